package rdm

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Options configure an Endpoint. The zero value is suitable for most uses.
type Options struct {
	// ID identifies the endpoint. Peers treat an endpoint that restarts with
	// the same ID on the same adapter as a new incarnation of the same peer.
	// The default is random.
	ID uint64

	// Receives is the number of receive buffers for all peers, by default 1024.
	// Packets is the number of packets buffered for retransmission to all
	// peers, by default 1024. Each takes an MTU of memory.
	Receives, Packets int

	// Backlog is the maximum number of bytes of messages that wait for Recv, by
	// default 4 MiB. Packets beyond it are dropped, and retransmitted by the
	// peer.
	Backlog int

	// Peers is the maximum number of peers at a time, by default 65536.
	Peers int

	// Ops is the maximum number of outstanding operations on memory of peers,
	// by default 1024, at most 32768.
	Ops int

	// GiveUp is the time without a response after which a peer fails, by
	// default 30 s, at least 100 ms: a busy machine delays healthy peers by
	// tens of milliseconds.
	GiveUp time.Duration

	// Service selects the goroutine that executes emulated operations of peers.
	Service Service

	// Lazy sends emulated writes without solicited events, so that they do not
	// wake the peer. They take effect when the peer makes progress for another
	// reason.
	Lazy bool

	// Emulate disables the adapter's RDMA over UD.
	Emulate bool

	// Allow returns the operations that a new peer may perform on local memory;
	// 0 permits messages only, ok false rejects the peer. It may block and use the
	// endpoint. It is called by Dial, and for each peer that dials in a goroutine
	// of its own, several times if the peer dials again. By default a peer may
	// perform the operations that a region permits. A panic reaches the caller of
	// Dial, and ends the process in those goroutines.
	Allow func(Addr) (access verbs.AccessFlags, ok bool)

	// OnPeerFailed is called in a goroutine of its own when a peer fails. It is
	// for peers that the program does not know, because they neither were dialed
	// nor sent a message; for others there is Peer.Done.
	OnPeerFailed func(*Peer, error)
}

// A Service selects the goroutine that executes emulated operations of peers.
type Service uint8

const (
	// ServeEvent is a goroutine that blocks until there is a solicited event.
	ServeEvent Service = iota
	// ServePoll is a goroutine that polls continuously.
	ServePoll
	// ServeCalls uses no goroutine: calls of the endpoint's methods and a timer
	// every 20 ms execute operations.
	ServeCalls
)

// String returns the name of the service.
func (s Service) String() string {
	if s > ServeCalls {
		return fmt.Sprintf("Service(%d)", uint8(s))
	}
	return [...]string{"event", "poll", "calls"}[s]
}

const (
	maxPackets = 1 << 20                // upper limit of Options.Receives and Packets; the device may permit fewer
	minGiveUp  = 100 * time.Millisecond // of Options; the first probe of a peer is sent after 10 ms
)

// validate returns an error for options out of range and sets the defaults.
func (o *Options) validate() error {
	for _, f := range []struct {
		name       string
		value      *int
		unset, max int
	}{
		{"Receives", &o.Receives, 1 << 10, maxPackets},
		{"Packets", &o.Packets, 1 << 10, maxPackets},
		{"Backlog", &o.Backlog, 4 << 20, 1 << 30},
		{"Peers", &o.Peers, 1 << 16, 1 << 24},
		{"Ops", &o.Ops, 1 << 10, maxOps},
	} {
		if *f.value < 0 || *f.value > f.max {
			return fmt.Errorf("%w: Options.%s: %d out of range [0, %d]", verbs.ErrInvalid, f.name, *f.value, f.max)
		}
		*f.value = cmp.Or(*f.value, f.unset)
	}
	if o.GiveUp != 0 && o.GiveUp < minGiveUp {
		return fmt.Errorf("%w: Options.GiveUp: %v, want at least %v", verbs.ErrInvalid, o.GiveUp, minGiveUp)
	}
	if o.Service > ServeCalls {
		return fmt.Errorf("%w: Options.Service: %d out of range [0, %d]", verbs.ErrInvalid, uint8(o.Service), uint8(ServeCalls))
	}
	o.GiveUp = cmp.Or(o.GiveUp, 30*time.Second)
	if o.ID == 0 {
		var b [8]byte
		rand.Read(b[:])
		o.ID = binary.BigEndian.Uint64(b[:]) | 1
	}
	return nil
}
