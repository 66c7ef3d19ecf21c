// Package peer gives the tests against Linux one interface to an adapter, softrnic in this
// process or rdma_rxe in the lab's guest. A [Side] is an adapter with a memory region, a
// completion queue and queue pairs. The same test runs with any two sides, so the results of
// different pairs can be compared.
//
//	a, err := peer.OpenSoftrnic(rnic.Options{}, peer.Options{})
//	b, err := peer.DialLinux(guest, "rxe0", gidIndex, peer.Options{}) // where Program listens
//	err = peer.Connect(a, b, verbs.ConnectOptions{})
//	err = b.PostRecv(0, 1, b.SGE(0, 64))
//	err = a.PostSend(0, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 64)})
//	wcs, err := b.Poll(1, time.Minute)
//
// The Linux side is a Python program that uses rdma-core's pyverbs.
package peer

import (
	"fmt"
	"hash/crc32"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Options configure a Side. Zero values select the defaults.
type Options struct {
	Type   verbs.QPType      // default RC
	QPs    int               // number of queue pairs, default 1
	Memory int               // bytes, default 64 KiB
	Access verbs.AccessFlags // of the memory, default all

	// QPAccess is the remote access allowed through the queue pairs, default all. NoQPAccess
	// allows none.
	QPAccess   verbs.AccessFlags
	NoQPAccess bool

	SRQ                  bool // all queue pairs share a receive queue
	SendDepth, RecvDepth int  // depth of the queues, default 64
}

// Defaults of Options.
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

// A Side is one side of a test: an adapter with a memory region, a completion queue and queue
// pairs, which are numbered from 0.
type Side interface {
	// Name returns "softrnic" or "rxe".
	Name() string

	// Endpoint returns the data that a peer's queue pair needs to connect.
	Endpoint(qp int) verbs.Endpoint

	// Connect moves a queue pair to StateRTS. Sends of a UD queue pair go to the given peer.
	Connect(qp int, to verbs.Endpoint, o verbs.ConnectOptions) error

	// PostRecv posts a receive, to the shared receive queue if there is one.
	PostRecv(qp int, id uint64, sges []verbs.SGE) error

	// PostSend posts a send request with its Flags unchanged.
	PostSend(qp int, wr verbs.SendWR) error

	// Poll waits for n completions. After the time within, it returns those that have arrived
	// without an error.
	Poll(n int, within time.Duration) ([]verbs.WC, error)

	// Arm requests an event for the next completion, or the next solicited one. Event reports
	// whether it arrived in time.
	Arm(solicited bool) error
	Event(within time.Duration) (bool, error)

	// Limit arms the limit event of the shared receive queue.
	Limit(n int) error

	// AsyncEvent returns the next asynchronous event, if one arrives in time.
	AsyncEvent(within time.Duration) (e verbs.EventType, ok bool, err error)

	State(qp int) (verbs.QPState, error)

	// Fail moves a queue pair to StateErr, which flushes all posted requests.
	Fail(qp int) error

	// SGE returns a scatter/gather list for a range of the memory. Addr and RKey are for the
	// peer.
	SGE(off, n int) []verbs.SGE
	Addr(off int) uint64
	RKey() uint32

	// Fill writes the pattern of a seed to a range of the memory, Sum returns the CRC-32 of a
	// range; see Pattern. Put and Get copy data.
	Fill(off, n int, seed uint32) error
	Sum(off, n int) (uint32, error)
	Put(off int, data []byte) error
	Get(off, n int) ([]byte, error)

	Close() error
}

// Connect connects each queue pair of a with the one of b with the same number. The default MTU
// is 4096, because Linux does not report its own.
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

// patternPeriod is the period of the pattern in bytes, a prime, so that a packet in the wrong
// place is detected.
const patternPeriod = 4099

// Pattern returns n bytes that depend on seed.
func Pattern(n int, seed uint32) []byte {
	b := make([]byte, n)
	fillPattern(b, seed)
	return b
}

func fillPattern(b []byte, seed uint32) {
	for i := range min(len(b), patternPeriod) {
		n := uint32(i)
		b[i] = byte(n*n*7 + n*seed + n>>8 + seed)
	}
	for done := patternPeriod; done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
}

// PatternSum returns the result of Side.Sum for a range with the pattern.
func PatternSum(n int, seed uint32) uint32 { return crc32.ChecksumIEEE(Pattern(n, seed)) }
