package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Request is a send, a receive, or one-sided communication. Who makes it sets
// the fields of its first group and leaves it alone until Done. To be used again
// it has to be zero again.
type Request struct {
	Envelope match.Envelope // of a receive, Source is the sender, or match.Any; of a send it does not count
	Dest     int            // rank, but for a receive
	Buf      []byte         // the Core's until Done
	Sync     bool           // a send is done when its receive is there
	Sign     uint64         // signature of a send's message; what a receive expects, 0 for any (see Core.Strange)
	Among    []int          // of a receive from match.Any: the ranks it can come from; nil is all
	Then     func(*Request) // called once it is Done, before the call of the Core that it is in returns; it may call the Core

	// Results, once Done.
	Done     bool
	Err      error
	Received match.Envelope // of the message
	Bytes    int            // that came, or went
	Sent     uint64         // of a receive: the signature of its message, 0 if the sender gave none
	Late     bool           // of a receive: its message was there before it, which Core.Receive finds

	node    match.Node[*Request]
	state   state
	scheme  Scheme // how it travels, if it is long
	alone   bool   // one-sided: the other rank is told nothing
	peer    int32  // with whom it is under way
	id      uint64 // in the table of requests that the peer knows
	to      uint64 // the request at the other end
	length  uint64 // of the message that a receive has
	key     envelope.Key
	exposed Exposed
	parts   parts  // that have come (Packed)
	offset  uint64 // of the next byte that leaves (Packed)
	atomic  Atomic
	notice  uint32 // of PutNotify
}

// state is where a request stands. A packet, or a call of the net, that does
// not belong to it changes nothing.
type state uint8

const (
	idle      state = iota
	queued          // its turn on the way to the peer has not come
	matching        // a send, for Matched
	offered         // a send, for Clear or Finish
	storing         // a send, for Net.Store
	streaming       // a send, in packets
	waiting         // a receive, for its message; a send to ourselves, for its receive
	fetching        // a receive, for Net.Fetch
	placing         // a receive, for Finish of who stores it, or Data
	filling         // a receive, for Data
)

// Errors of requests and packets, wrapped with whom they concern.
var (
	ErrTruncated = errors.New("message is longer than the receive buffer") // MPI_ERR_TRUNCATE
	ErrLost      = errors.New("the other rank is lost")                    // MPI_ERR_PROC_FAILED
	ErrCanceled  = errors.New("canceled")
	ErrProtocol  = errors.New("the other rank broke the protocol")
	ErrFlood     = errors.New("too much has come that nobody receives")
	ErrTooLong   = errors.New("payload is longer than a packet")
)

// Ready reports whether the request is done.
func (r *Request) Ready() bool { return r.Done }

// from reports whether a receive can have its message from a rank.
func (r *Request) from(rank int) bool {
	if r.Envelope.Source != match.Any {
		return int(r.Envelope.Source) == rank
	}
	return r.Among == nil || slices.Contains(r.Among, rank)
}

func (r *Request) truncated() error {
	return fmt.Errorf("%w: %d bytes came from rank %d with tag %d, there is room for %d", ErrTruncated,
		r.length, r.Received.Source, r.Received.Tag, len(r.Buf))
}
