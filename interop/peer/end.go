package peer

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Options say what an end has. Zero values are good for most.
type Options struct {
	Type   verbs.QPType      // RC
	QPs    int               // number of queue pairs, 1
	Memory int               // bytes, 64 KiB
	Access verbs.AccessFlags // of the memory; everything

	// QPAccess is what peers may do through the queue pairs; everything.
	// NoQPAccess allows nothing.
	QPAccess   verbs.AccessFlags
	NoQPAccess bool

	SRQ                  bool // all queue pairs receive from one shared queue
	SendDepth, RecvDepth int  // requests of a queue, 64
}

// Defaults for Options.
const (
	defaultMemory = 64 << 10
	defaultDepth  = 64
	cqDepth       = 4096
	qkey          = 0x11111111 // of all UD queue pairs
)

func (o Options) withDefaults() Options {
	if o.Type == 0 {
		o.Type = verbs.RC
	}
	if o.QPs == 0 {
		o.QPs = 1
	}
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Access == 0 {
		o.Access = verbs.AccessLocalWrite | verbs.AccessRemote
	}
	if o.QPAccess == 0 && !o.NoQPAccess {
		o.QPAccess = verbs.AccessRemote
	}
	if o.SendDepth == 0 {
		o.SendDepth = defaultDepth
	}
	if o.RecvDepth == 0 {
		o.RecvDepth = defaultDepth
	}
	return o
}

// Side is one side of a test. Queue pairs are counted from 0.
type Side interface {
	// Name is "softrnic" or "rxe".
	Name() string

	// Endpoint is what the peer's queue pair must know of one here.
	Endpoint(qp int) verbs.Endpoint

	// Connect takes a queue pair to StateRTS. Sends of a UD queue pair go to
	// the peer given here.
	Connect(qp int, to verbs.Endpoint, o verbs.ConnectOptions) error

	// PostRecv posts a receive, to the shared queue if there is one.
	PostRecv(qp int, id uint64, sges []verbs.SGE) error

	// PostSend posts a request; Flags are taken as they are.
	PostSend(qp int, wr verbs.SendWR) error

	// Poll waits for n completions. Those that have come until the time is
	// over are returned without an error.
	Poll(n int, within time.Duration) ([]verbs.WC, error)

	// Arm asks for an event at the next completion, or the next solicited
	// one. Event reports whether it came in time.
	Arm(solicited bool) error
	Event(within time.Duration) (bool, error)

	// Limit arms the limit event of the shared receive queue.
	Limit(n int) error

	// AsyncEvent returns the next asynchronous event that comes in time.
	AsyncEvent(within time.Duration) (e verbs.EventType, ok bool, err error)

	State(qp int) (verbs.QPState, error)

	// Fail takes a queue pair to StateErr, which completes everything posted.
	Fail(qp int) error

	// SGE names a range of the memory; Addr and RKey are for the peer.
	SGE(off, n int) []verbs.SGE
	Addr(off int) uint64
	RKey() uint32

	// Fill writes the pattern of a seed to a range of the memory, Sum is the
	// CRC-32 of one; see Pattern. Put and Get copy.
	Fill(off, n int, seed uint32) error
	Sum(off, n int) (uint32, error)
	Put(off int, data []byte) error
	Get(off, n int) ([]byte, error)

	Close() error
}

// Connect connects all queue pairs of two ends, each with its like. The MTU is
// 4096 unless given, as Linux does not tell its own.
func Connect(a, b Side, qps int, o verbs.ConnectOptions) error {
	if o.MTU == 0 {
		o.MTU = verbs.MTU4096
	}
	for i := range qps {
		if err := a.Connect(i, b.Endpoint(i), o); err != nil {
			return fmt.Errorf("%s: %w", a.Name(), err)
		}
		if err := b.Connect(i, a.Endpoint(i), o); err != nil {
			return fmt.Errorf("%s: %w", b.Name(), err)
		}
	}
	return nil
}
