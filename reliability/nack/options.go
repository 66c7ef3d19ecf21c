package nack

import "github.com/softrnic/softrnic/reliability"

// Time is nanoseconds on the caller's clock; 0 means never.
type Time = reliability.Time

// Window is how many packets to a peer there are at most that it may ask for.
const Window = 64

// Options say how an end works. Self, Peers, Epoch and MTU have to be given; of
// the others 0 means what is said there.
type Options struct {
	Self  uint32 // our name, in every packet: by it the peer knows us
	Peers int    // how many there are, numbered from 0; higher numbers that are named are added

	// Epoch tells this life of the end from others, so that a peer notices
	// that it has been started anew. It is not 0, and newer than that of all
	// lives before, by less than 2^31: for example, seconds of a clock.
	Epoch uint32

	MTU int // bytes of the longest packet, header included: 128 to 65535

	// MaxMessage is the length of the longest message in bytes: at most 32
	// packets and no more than there are slots, and that if not given. Longer
	// ones are the caller's to cut.
	MaxMessage int

	// Slots is how many packets are kept for all peers at most; 1024 unless
	// given. They lie in Memory, for an adapter to read from, or in memory of
	// our own; the function Memory says how much they take.
	Slots  int
	Memory []byte

	// ReorderBytes is how many bytes of packets are kept, of all peers, that have come
	// before others of their peer; 4 MiB unless given.
	ReorderBytes int

	// AckDelay is how long an acknowledgement waits for a packet that it can
	// travel with, in nanoseconds; 1 ms unless given. GiveUp is how long a peer
	// may take none of our packets, or say nothing with a message half sent,
	// until it is lost; 30 s unless given.
	AckDelay, GiveUp int64
}

// Rules that are no options.
const (
	ackRequestEvery  = 16                            // packets, of which one wants an acknowledgement
	maxPackets       = 32                            // packets of a message
	minMTU           = 128                           // bytes
	sendQuota        = 16                            // packets that a peer gets until it is another's turn
	maxFirstProbe    = 20 * reliability.Millisecond  // until a question, at first: a peer may be busy
	maxProbeInterval = 256 * reliability.Millisecond // between two questions
	maxFree          = 64                            // of each thing that is used again
)

func (o *Options) setDefaults() {
	if o.Epoch == 0 || o.MTU < minMTU || o.MTU > 1<<16-1 || o.Peers < 1 {
		panic("nack: Options without Peers or Epoch, or with an MTU that is none")
	}
	if o.Slots <= 0 {
		o.Slots = 1024
	}
	if o.Memory == nil {
		o.Memory = make([]byte, MemorySize(o.Slots, o.MTU))
	}
	o.Memory = o.Memory[:MemorySize(o.Slots, o.MTU)]
	if most := min(o.Slots, maxPackets) * (o.MTU - DataSize); o.MaxMessage <= 0 || o.MaxMessage > most {
		o.MaxMessage = most
	}
	if o.ReorderBytes <= 0 {
		o.ReorderBytes = 4 << 20
	}
	if o.AckDelay <= 0 {
		o.AckDelay = reliability.Millisecond
	}
	if o.GiveUp <= 0 {
		o.GiveUp = 30_000 * reliability.Millisecond
	}
}
