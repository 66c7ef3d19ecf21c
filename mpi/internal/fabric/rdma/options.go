package rdma

import (
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Options are the parameters of the fabric, which mpi.RDMAOptions documents. The zero value is
// usable.
type Options struct {
	Eager               int // 0 is 8 KiB
	Rendezvous          protocol.Scheme
	Credits             int // 0 is 64
	Flow                Flow
	Receives, Sends     int // 0 is 128
	Fast                bool
	FastSize, FastPeers int // 0 is 1 KiB, and 16 ranks
	Rails               int // 0 is 1, the maximum is MaxRails

	// Connect are the attributes of the connections. A Timeout of 0 is 16, that is 0.27
	// s: a rank that acknowledges nothing fails after about 7 s. Ranks that share a
	// processor may be unresponsive for up to 2 s.
	Connect verbs.ConnectOptions

	Retries int // of a connect request; 0 is 15, the maximum
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
