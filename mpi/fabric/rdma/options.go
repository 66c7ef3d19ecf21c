package rdma

import (
	"github.com/softrnic/softrnic/mpi/protocol"
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

	// Qos of the queue pairs.
	Connect verbs.ConnectOptions
}

func (o *Options) fill() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Eager, 8<<10)
	def(&o.Credits, 64)
	def(&o.Receives, 128)
	def(&o.Sends, 128)
}
