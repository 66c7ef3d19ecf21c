package nack

import "github.com/softrnic/softrnic/reliability"

// Time is nanoseconds on the caller's clock. As a deadline, 0 means never.
type Time = reliability.Time

// Window is the maximum number of unacknowledged packets per peer.
const Window = 64

// Options configure a Core. Self, Peers, Epoch and MTU are required. The other
// fields have defaults.
type Options struct {
	Self  uint32 // ID of this end, carried in every packet
	Peers int    // expected number of peers, numbered from 0; higher numbers are added on demand

	// Epoch identifies this incarnation of the end, so that a peer detects a
	// restart. It is not 0, and is newer than those of all earlier incarnations
	// by less than 2^31, for example a clock in seconds.
	Epoch uint32

	MTU int // longest packet in bytes, header included: 128 to 65535

	// MaxMessage is the maximum length of a message in bytes. The default and
	// upper bound is 32 packets, or the number of slots if that is less.
	MaxMessage int

	// Slots is the number of packets buffered for retransmission to all peers,
	// by default 1024. They lie in Memory, where an adapter can read them; its
	// required length is MemorySize(Slots, MTU). If Memory is nil, they lie in
	// slabs of SlabSlots packets, each of which AddSlab allocates with the
	// given length when it is first needed; by default the Core allocates them.
	// An error of AddSlab is returned by Send.
	Slots   int
	Memory  []byte
	AddSlab func(length int) ([]byte, error)

	// Short is the length up to which packets need not lie in a slab, because the
	// caller copies them: 0, or at least the size of a header. They take memory of
	// about that length instead of the MTU. Memory excludes it.
	Short int

	// ReorderBytes is the maximum number of bytes buffered out of order for all
	// peers, by default 4 MiB.
	ReorderBytes int

	// AckDelay is the maximum delay of an acknowledgement in nanoseconds, by
	// default 1 ms, during which it can be piggybacked. GiveUp is the time in
	// nanoseconds after which a peer is closed that acknowledges nothing, or
	// does not continue a partial message, by default 30 s.
	AckDelay, GiveUp int64
}

// Protocol constants.
const (
	ackRequestEvery  = 16                            // packets per requested acknowledgement
	maxPackets       = 32                            // packets per message
	minMTU           = 128                           // bytes
	sendQuota        = 16                            // packets per peer and round of Drain
	maxFirstProbe    = 20 * reliability.Millisecond  // upper bound of the first probe interval, for busy peers
	maxProbeInterval = 256 * reliability.Millisecond // upper bound of the probe interval
	maxFree          = 64                            // length limit of each free list
)

func (o *Options) setDefaults() {
	if o.Epoch == 0 || o.MTU < minMTU || o.MTU > 1<<16-1 || o.Peers < 1 {
		panic("nack: Options.Peers or Options.Epoch missing, or Options.MTU out of range")
	}
	if o.Slots <= 0 {
		o.Slots = 1024
	}
	if o.Memory != nil {
		o.Short = 0
		o.Memory = o.Memory[:MemorySize(o.Slots, o.MTU)]
	}
	if o.AddSlab == nil {
		o.AddSlab = func(length int) ([]byte, error) { return make([]byte, length), nil }
	}
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
