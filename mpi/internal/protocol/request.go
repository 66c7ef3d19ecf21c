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
	Envelope  match.Envelope // of a receive, Source is the sender, or match.Any; of a send it does not count
	Dest      int            // rank, but for a receive
	Buf       []byte         // the Core's until Done
	Sync      bool           // a send is done when its receive is there
	Signature uint64         // signature of a send's message; what a receive expects, 0 for any (see Core.OnSignature)
	Sources   []int          // of a receive from match.Any: the ranks it can come from; nil is all
	OnDone    func(*Request) // called once it is Done, before the call of the Core that it is in returns; it may call the Core

	// Results, once Done.
	Done          bool
	Err           error
	Received      match.Envelope // of the message
	Bytes         int            // that came, or went
	SentSignature uint64         // of a receive: the signature of its message, 0 if the sender gave none
	WasUnexpected bool           // of a receive: its message was there before it, which Core.Receive finds

	node     match.Node[*Request]
	state    state
	scheme   Scheme // how it travels, if it is long
	oneSided bool   // one-sided: the other rank is told nothing
	peer     int32  // with whom it is under way
	id       uint64 // in the table of requests that the peer knows
	remoteID uint64 // the request at the other end
	length   uint64 // of the message that a receive has
	key      envelope.Key
	exposed  Registration
	received rangeSet // that have come (Packed)
	offset   uint64   // of the next byte that leaves (Packed)
	atomic   Atomic
	notice   uint32 // of PutNotify
}

// state is where a request stands. A packet, or a call of the net, that does
// not belong to it changes nothing.
type state uint8

const (
	stateIdle         state = iota
	stateQueued             // its turn on the way to the peer has not come
	stateAwaitMatched       // a send, for Matched
	stateRTSSent            // a send, for Clear or Finish
	stateWriting            // a send, for Net.RDMAWrite
	stateStreaming          // a send, in packets
	stateUnmatched          // a receive, for its message; a send to ourselves, for its receive
	stateReading            // a receive, for Net.RDMARead
	stateAwaitWrite         // a receive, for Finish of who stores it, or Data
	stateAwaitData          // a receive, for Data
)

// Errors of requests and packets, wrapped with whom they concern.
var (
	ErrTruncated       = errors.New("message is longer than the receive buffer") // MPI_ERR_TRUNCATE
	ErrLost            = errors.New("the other rank is lost")                    // MPI_ERR_PROC_FAILED
	ErrCanceled        = errors.New("canceled")
	ErrProtocol        = errors.New("the other rank broke the protocol")
	ErrUnexpectedLimit = errors.New("too much has come that nobody receives")
	ErrTooLong         = errors.New("payload is longer than a packet")
)

// Ready reports whether the request is done.
func (r *Request) Ready() bool { return r.Done }

// canMatch reports whether a receive can have its message from a rank.
func (r *Request) canMatch(rank int) bool {
	if r.Envelope.Source != match.Any {
		return int(r.Envelope.Source) == rank
	}
	return r.Sources == nil || slices.Contains(r.Sources, rank)
}

func (r *Request) truncatedError() error {
	return fmt.Errorf("%w: %d bytes came from rank %d with tag %d, there is room for %d", ErrTruncated,
		r.length, r.Received.Source, r.Received.Tag, len(r.Buf))
}
