package rdm

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Options say how an Endpoint works. The zero value is good for most.
type Options struct {
	// ID names the endpoint: who is started anew with the same ID on the same
	// adapter is another life of the same peer to others. Random unless given.
	ID uint64

	// Receives is the number of buffers for datagrams of all peers; 1024 unless
	// given. Packets is how many datagrams to all peers are kept at most, because
	// they may be asked for again; 1024 unless given. Each takes an MTU.
	Receives, Packets int

	// Backlog is how many bytes of messages wait for Recv at most; 4 MiB unless
	// given. What is too much is not acknowledged, and comes again.
	Backlog int

	// Peers is how many there may be at a time; 65536 unless given.
	Peers int

	// Ops is how many operations on memory of peers are under way at most; 1024
	// unless given.
	Ops int

	// GiveUp is how long a peer may answer nothing until it is lost; 30 s
	// unless given.
	GiveUp time.Duration

	// Service says who carries out what peers ask for, if it is emulated.
	Service Service

	// Lazy leaves writes to peers, if they are emulated, until the owner of the
	// memory looks, or its service is awake for something else: they wake nobody.
	Lazy bool

	// Emulate does without the adapter's own RDMA over UD.
	Emulate bool

	// Allow says what a peer that makes contact may do with our memory, and
	// with 0 that it may send messages only; ok false does not let it in at all.
	// It is called with the endpoint's lock held and must not use it. Without it
	// everyone may do what a region permits.
	Allow func(Addr) (access verbs.AccessFlags, ok bool)

	// OnPeerFailed is told what has become of a peer, under the same conditions.
	OnPeerFailed func(*Peer, error)
}

// Service is who carries out what peers ask for.
type Service uint8

const (
	// ServeEvent: a goroutine that sleeps until there is a solicited event.
	ServeEvent Service = iota
	// ServePoll: a goroutine that polls all the time.
	ServePoll
	// ServeCalls: nobody but who calls the endpoint, and a timer every 20 ms.
	ServeCalls
)

// String returns the name of the service.
func (s Service) String() string {
	if s > ServeCalls {
		return fmt.Sprintf("Service(%d)", uint8(s))
	}
	return [...]string{"event", "poll", "calls"}[s]
}

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Receives, 1<<10)
	def(&o.Packets, 1<<10)
	def(&o.Backlog, 4<<20)
	def(&o.Peers, 1<<16)
	def(&o.Ops, 1<<10)
	o.Ops = min(o.Ops, maxOps)
	if o.GiveUp <= 0 {
		o.GiveUp = 30 * time.Second
	}
	if o.ID == 0 {
		var b [8]byte
		rand.Read(b[:])
		o.ID = binary.BigEndian.Uint64(b[:]) | 1
	}
}
