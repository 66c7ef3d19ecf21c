package rdma

import (
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Options are the parameters of the fabric. The zero value is usable.
type Options struct {
	// Eager is the maximum payload of an eager message in bytes; 0 is 8 KiB.
	Eager int

	// Rendezvous is the protocol of longer messages; the default is RendezvousRead.
	Rendezvous protocol.Scheme

	// Credits is the maximum number of packets in flight from one rank to another, not
	// yet handled; 0 is 64.
	Credits int

	// Receives is the initial number of receive buffers, shared by all ranks, and the
	// number by which it grows; 0 is 128.
	Receives int

	// Sends is the number of send buffers, for packets that are too long to be inline;
	// 0 is 128.
	Sends int

	// Fast lets ranks write short packets into memory that the receiver polls: the RDMA
	// fast path. It needs an adapter that writes the end of a message last. Waiting
	// becomes busy polling: it is for jobs with a core per rank.
	Fast bool

	// FastSize is the maximum length in bytes of a packet on the fast path, with its
	// header, a multiple of 64; 0 is 1 KiB. FastPeers is the maximum number of ranks
	// that are polled; the others use SEND; 0 is 16.
	FastSize, FastPeers int

	// Rails is the number of queue pairs between two ranks, over which long reads are
	// striped; 0 is 1, the maximum is MaxRails. It must be the same on all ranks.
	Rails int

	// Connect are the attributes of the connections. A Timeout of 0 is 16, that is 0.27
	// s: a rank that acknowledges nothing fails after about 7 s. Ranks that share a
	// processor may be unresponsive for up to 2 s.
	Connect verbs.ConnectOptions

	// Retries is the number of retransmissions of a connect request, about twice a
	// second; 0 is 15, which is the maximum.
	Retries int
}

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Eager, 8<<10)
	def(&o.Credits, 64)
	def(&o.Receives, 128)
	def(&o.Sends, 128)
	def(&o.FastSize, 1<<10)
	def(&o.FastPeers, 16)
	def(&o.Retries, 15)
	o.Retries = min(o.Retries, 15)
	if o.Connect.AckTimeout == 0 {
		o.Connect.AckTimeout = verbs.AckTimeout(16)
	}
	o.FastSize &^= 63
	def(&o.Rails, 1)
	o.Rails = min(o.Rails, MaxRails)
}
