package cluster

import "time"

// Costs are the times that the hardware of a cluster takes. The zero value takes no time, except a
// latency of memory.DefaultDelay.
type Costs struct {
	// Wire, with the adapters' constant share.
	Latency  time.Duration // from the last byte of a packet in one adapter to that in the other
	ByteTime float64       // nanoseconds that a byte occupies the wire of an adapter, in each direction
	MTU      int           // of the network's interfaces in bytes; 0 is memory.DefaultMTU

	// Adapter.
	Gap         time.Duration // in which an adapter sends, or receives, a packet, besides its bytes
	Contexts    int           // queue pair contexts that its cache holds; 0 is no limit
	ContextMiss time.Duration // fetches a context from the host's memory

	// Processor, for each message that begins with a send, write or read request, and for each that
	// completes a receive.
	Post      time.Duration
	Complete  time.Duration
	Match     time.Duration // besides, for a send, at either end: the layer above verbs
	CopyByte  float64       // nanoseconds to copy a byte of a send at either end, or in a collective algorithm
	CopyBlock time.Duration // besides, for each block that a collective algorithm copies

	// Software is set if the processor, and not the adapter, handles packets. It then takes the
	// following times as well.
	Software      bool
	Call          time.Duration // a call of the system that sends or receives a batch
	SendPacket    time.Duration // a packet sent
	ReceivePacket time.Duration // a packet received
	PacketByte    float64       // nanoseconds a byte of a packet, at either end

	// Where hosts share processors as processes, see Options.Processors.
	Poll   time.Duration // a poll that finds no packet; at least 1 ns
	Switch time.Duration // a host that yields continues another one
	Cold   time.Duration // besides, for each further host that has run since, up to coldHosts, which evict its data from caches
	Wake   time.Duration // a host sleeps, is woken and continues

	// The runtime of Go has a thread that takes the scheduler's right to run goroutines (its P)
	// from a goroutine that sleeps in a call of the system, and checks all of them frequently for
	// some time after.
	LongSleep   time.Duration // sleeps from which on the right is taken; also between two checks; 0 is never
	Reacquire   time.Duration // besides Wake, after such a sleep
	MonitorTick time.Duration // a check
}
