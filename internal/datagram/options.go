package datagram

import (
	"time"

	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Options say what Port to open. Self and Epoch are those of nack.Options, and of
// the others 0 means what is said there.
type Options struct {
	Self, Epoch uint32
	Peers       int // known from the start; more come as they are named. 1 unless given
	MaxMessage  int // bytes: 32 datagrams unless given

	// Receives is the number of buffers for datagrams of all peers; 1024 unless
	// given. Packets is how many datagrams to all peers are kept at most, because
	// they may be asked for again; 1024 unless given. Each takes an MTU.
	Receives, Packets int

	// ReorderBytes is how many bytes are kept of packets that came before others.
	ReorderBytes int

	// GiveUp is how long a peer may answer nothing until it is lost; 30 s
	// unless given.
	GiveUp time.Duration

	// QueuePair changes the queue pair that is made, if it is not nil.
	QueuePair func(*verbs.QPInitAttr)

	// OnDatagram gets each datagram, without the GRH, which is the 40 bytes before
	// it; both are the port's again when it returns. Others gets the completions
	// of requests that the port has not posted: their WRID is below 1<<56.
	// Failed is told that the queue pair is of no further use. Refused gets the number of each peer to
	// which the system refuses to send. Wake is called when there are such peers, with
	// locks of the device held: it must not block, and has HandleRefusals called soon.
	OnDatagram   func(now nack.Time, wc *verbs.WC, grh, packet []byte)
	OnCompletion func(wc *verbs.WC)
	OnFailure    func(error)
	OnRefused    func(now nack.Time, number int, why *verbs.RefusedError)
	Wake         func()
}

// MaxDatagrams is how many datagrams a message may be.
const MaxDatagrams = 32

// MaxMessageSize is the longest message in so many datagrams of an MTU, in bytes.
func MaxMessageSize(mtu, datagrams int) int { return datagrams * (mtu - nack.DataSize) }

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Peers, 1)
	def(&o.Receives, 1<<10)
	def(&o.Packets, 1<<10)
	if o.GiveUp <= 0 {
		o.GiveUp = 30 * time.Second
	}
}
