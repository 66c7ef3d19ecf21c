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
	Switch        time.Duration // the processor changes to another host, see Options.Processors
}
