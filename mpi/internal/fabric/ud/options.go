package ud

import (
	"time"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// Options are the parameters of the fabric, which mpi.UDOptions documents. The zero value is
// usable.
type Options struct {
	Eager             int           // 0 is about 8 KiB
	Receives, Packets int           // 0 is 1024
	GiveUp            time.Duration // 0 is 10 s
}

// minReceives is the least number of receive buffers at the start, which else is a 16th of
// Options.Receives.
const minReceives = 8

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
