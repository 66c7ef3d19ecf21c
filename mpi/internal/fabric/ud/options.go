package ud

import (
	"time"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// Options are the parameters of the fabric. The zero value is usable.
type Options struct {
	// Eager is the maximum payload of an eager message, and of the packets of longer
	// ones, in bytes; 0 is about 8 KiB, two datagrams of 4 KiB. The maximum is 32
	// datagrams.
	Eager int

	// Receives is the number of receive buffers for datagrams of all ranks; 0 is 1024.
	// Packets is the maximum number of datagrams to all ranks that are buffered for
	// retransmission; 0 is 1024. Each takes an MTU.
	Receives, Packets int

	// GiveUp is the time without a reply after which a rank fails; 0 is 10 s.
	GiveUp time.Duration
}

// setDefaults sets the options that are zero, for an adapter with an MTU of mtu bytes.
func (o *Options) setDefaults(mtu int) {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Eager, maxPayload(mtu, 8<<10/mtu))
	o.Eager = max(envelope.KeySize, min(o.Eager, maxPayload(mtu, datagram.MaxDatagrams)))
	def(&o.Receives, 1<<10)
	def(&o.Packets, 1<<10)
	o.Packets = max(o.Packets, 2*datagram.MaxDatagrams)
	if o.GiveUp <= 0 {
		o.GiveUp = 10 * time.Second
	}
}

// maxPayload returns the payload of a packet that takes a number of datagrams.
func maxPayload(mtu, datagrams int) int {
	return datagram.MaxMessageSize(mtu, datagrams) - envelope.Size
}
