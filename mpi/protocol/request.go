package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/match"
)

// Request is a send or a receive. Who makes it sets the fields of its first
// group and leaves it alone until Done.
type Request struct {
	Envelope match.Envelope // Source is the sender; of a receive it may be match.Any
	Dest     int            // rank, of a send
	Buf      []byte         // the Core's until Done
	Sync     bool           // a send is done when its receive is there
	Among    []int          // of a receive from match.Any: the ranks it can come from; nil is all

	// Results, once Done.
	Done     bool
	Err      error
	Received match.Envelope // of the message
	Bytes    int            // that came, or went

	node    match.Node[*Request]
	id      uint64 // in the table of requests that the peer knows
	exposed Exposed
	peer    int32  // with whom the message is under way
	left    uint64 // bytes that have not come yet (Packed)
	offset  uint64 // of the next byte that leaves (Packed)
	to      uint64 // the request at the other end
	state   state
}

// from reports whether a receive can have its message from a rank.
func (r *Request) from(rank int) bool {
	if r.Envelope.Source != match.Any {
		return int(r.Envelope.Source) == rank
	}
	return r.Among == nil || slices.Contains(r.Among, rank)
}

// Ready reports whether the request is done.
func (r *Request) Ready() bool { return r.Done }

type state uint8

const (
	idle      state = iota
	waiting         // in a queue: a receive for its message, a send for room
	asking          // a send for Matched, or Finish of who fetches it
	offering        // a send for Clear
	fetching        // a receive by Net.Fetch
	storing         // a send by Net.Store
	placing         // a receive for Finish of who stores it
	streaming       // a send in packets
	filling         // a receive in packets
)

// Errors of requests, wrapped with whom they concern.
var (
	ErrTruncated = errors.New("message is longer than the receive buffer") // MPI_ERR_TRUNCATE
	ErrLost      = errors.New("the other rank is lost")
	ErrCanceled  = errors.New("canceled")
	ErrProtocol  = errors.New("the other rank broke the protocol")
)

func (r *Request) finish(err error) {
	r.state = idle
	if r.Err == nil {
		r.Err = err
	}
	r.Done = true
}

func (r *Request) truncated(length uint64) error {
	return fmt.Errorf("%w: %d bytes came from rank %d with tag %d, there is room for %d", ErrTruncated,
		length, r.Received.Source, r.Received.Tag, len(r.Buf))
}

// Message is a message that has come and has no receive yet.
type Message struct {
	Envelope match.Envelope
	Length   uint64

	data  []byte // of an eager one
	kind  envelope.Kind
	flags envelope.Flags
	id    uint64
	key   envelope.Key
	self  *Request // the send of one from ourselves
	node  match.Node[*Message]
}

// table gives requests numbers that peers can name. A number that is old or
// made up finds nothing.
type table struct {
	slots []slot
	free  []uint32
	used  int
}

type slot struct {
	r     *Request
	epoch uint32
}

func (t *table) add(r *Request) {
	if r.id != 0 {
		return
	}
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.epoch++
	s.r = r
	r.id = uint64(s.epoch)<<32 | uint64(i)
	t.used++
}

func (t *table) get(id uint64) *Request {
	i := uint32(id)
	if uint64(i) >= uint64(len(t.slots)) || t.slots[i].epoch != uint32(id>>32) {
		return nil
	}
	return t.slots[i].r
}

func (t *table) remove(r *Request) {
	if r.id == 0 {
		return
	}
	i := uint32(r.id)
	t.slots[i].r = nil
	t.free = append(t.free, i)
	r.id = 0
	t.used--
}
