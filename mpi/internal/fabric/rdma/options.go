package rdma

import (
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Options say how ranks talk. The zero value is good for most.
type Options struct {
	// Eager is the payload of the longest message that is sent without
	// asking, in bytes. 8 KiB unless given.
	Eager int

	// Rendezvous is how longer ones travel: read by the receiver unless given.
	Rendezvous protocol.Scheme

	// Credits is how many packets a rank may have under way to another that
	// the other has not dealt with. 64 unless given.
	Credits int

	// Receives is the number of buffers that packets of all ranks arrive in,
	// at first; more are added as they run low. 128 unless given.
	Receives int

	// Sends is the number of buffers that packets leave from which are too
	// long for their work request. 128 unless given.
	Sends int

	// Fast lets ranks write short packets into memory that the receiver
	// polls: the RDMA fast path. It needs an adapter that makes the end of a
	// write visible last, and waiting is looking again and again: it is for
	// jobs with a core for every rank.
	Fast bool

	// FastSize is the length of the longest such packet with its header, in
	// bytes, a multiple of 64; 1 KiB unless given. FastPeers is how many ranks
	// are polled at most; others send. 16 unless given.
	FastSize, FastPeers int

	// Rails is the number of queue pairs between two ranks: long messages are
	// read over all of them. 1 unless given, MaxRails at most; the same at all ranks.
	Rails int

	// Queue is for a fabric that is a part of another: see Complete. Then Fast does
	// not count.
	Queue *fabric.SharedCQ

	// Connect are the attributes of the connections. Timeout is 16 unless given, 0.27 s: a rank
	// that acknowledges nothing is lost after some 7 s. Many a rank that shares its
	// processor has had none for two.
	Connect verbs.ConnectOptions

	// Retries is how often a rank that does not answer is asked again to connect,
	// about twice a second. 15 unless given, and at most.
	Retries int
}

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	o.Fast = o.Fast && o.Queue == nil
	def(&o.Eager, 8<<10)
	def(&o.Credits, 64)
	def(&o.Receives, 128)
	def(&o.Sends, 128)
	def(&o.FastSize, 1<<10)
	def(&o.FastPeers, 16)
	def(&o.Retries, 15)
	o.Retries = min(o.Retries, 15)
	if o.Connect.Timeout == 0 {
		o.Connect.Timeout = 16
	}
	o.FastSize &^= 63
	def(&o.Rails, 1)
	o.Rails = min(o.Rails, MaxRails)
}
