package datagram

import (
	"time"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Options configure a Port. Self and Epoch are those of nack.Options. The other
// fields have defaults.
type Options struct {
	Self, Epoch uint32
	Peers       int // expected number of peers, by default 1; more are added on demand
	MaxMessage  int // maximum message in bytes, by default 32 datagrams

	// Receives is the maximum number of receive buffers for all peers, by default
	// 1024. Packets is the number of packets buffered for retransmission to all
	// peers, by default 1024. Each takes an MTU of memory, and a packet of up to
	// 256 bytes that length. Packets take it when they are first used, the first
	// FirstReceives receives from the start, by default all, and the others from
	// calls of GrowReceives.
	Receives, FirstReceives, Packets int

	// ReorderBytes is the maximum number of bytes buffered out of order.
	ReorderBytes int

	// GiveUp is the time without a response after which a peer fails, by
	// default 30 s.
	GiveUp time.Duration

	// QueuePair modifies the attributes of the queue pair before its creation,
	// if not nil.
	QueuePair func(*verbs.QPInitAttr)

	// OnDatagram receives each datagram and the 40-byte GRH before it. Both are
	// valid until it returns. OnCompletion receives the completions of work
	// requests that the port has not posted; their WRID is less than 1<<56.
	// OnFailure reports that the queue pair has failed. OnRefused reports a
	// peer to which the system refuses to send packets. Wake is called when
	// there are such peers, with locks of the device held: it must not block,
	// and must cause a call of HandleRefusals.
	OnDatagram   func(now nack.Time, wc *verbs.WC, grh, packet []byte)
	OnCompletion func(wc *verbs.WC)
	OnFailure    func(error)
	OnRefused    func(now nack.Time, number int, why *verbs.RefusedError)
	Wake         func()
}

// MaxDatagrams is the maximum number of datagrams of a message.
const MaxDatagrams = 32

// MaxMessageSize returns the maximum message length in bytes for a number of
// datagrams of an MTU.
func MaxMessageSize(mtu, datagrams int) int { return datagrams * (mtu - nack.DataSize) }

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Peers, 1)
	def(&o.Receives, 1<<10)
	def(&o.FirstReceives, o.Receives)
	o.FirstReceives = (o.FirstReceives + slabReceives - 1) / slabReceives * slabReceives // slabs that grow are full
	def(&o.Packets, 1<<10)
	if o.GiveUp <= 0 {
		o.GiveUp = 30 * time.Second
	}
}
