package ud

import (
	"time"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// Options say how ranks talk. The zero value is good for most.
type Options struct {
	// Eager is the payload of the longest message that is sent without asking,
	// and of the packets of longer ones, in bytes. About 8 KiB unless given,
	// which is two datagrams of 4 KiB; at most 32 datagrams.
	Eager int

	// Receives is the number of buffers for datagrams of all ranks; 1024 unless
	// given. Packets is how many datagrams to all ranks are kept at most,
	// because they may be asked for again; 1024 unless given. Each takes an MTU.
	Receives, Packets int

	// GiveUp is the time without an answer of a rank until it is lost; 10 s
	// unless given.
	GiveUp time.Duration

	// PollShared is for a fabric that is a part of another, which polls its queue of
	// completions: it sees what has come. Poll and Block are not called then.
	PollShared func()
}

// setDefaults fills in what is not given, for an adapter whose datagrams have mtu bytes.
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

// maxPayload is the payload of a packet that is as many datagrams.
func maxPayload(mtu, datagrams int) int {
	return datagram.MaxMessageSize(mtu, datagrams) - envelope.Size
}
