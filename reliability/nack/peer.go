package nack

import (
	"math/bits"

	"github.com/softrnic/softrnic/reliability"
)

// peer is what an end knows of another. What it needs only while something is
// under way hangs on pointers: an idle one is small.
type peer struct {
	number int
	open   bool   // packets may leave: the caller knows where to
	gone   bool   // closed, or given up, in this epoch
	epoch  uint32 // of its life, 0 as long as we do not know

	out   sending
	in    receiving
	owe   owed
	timer timer

	active   bool  // in Core.active
	waiting  bool  // the caller wants to hear of room in the ring
	starving bool  // and of slots: in Core.starved
	need     uint8 // packets that it wants room for
}

// sending is the way to a peer. Numbers: all before una has come there, all before
// fresh has left at least once, all before next is in the ring.
type sending struct {
	una, fresh, next uint32
	order            uint32 // of the next that leaves
	echo             uint32 // the newest that has come there
	ring             *outbox
	flying           int // bytes that have left, and are neither there nor known to be lost
	window           reliability.Window
	rtt              reliability.RTT
	mtu              uint16
	unasked          uint8 // packets since one that wanted an answer
	asks             uint8 // since an answer
	refusals         uint8 // attempts since then that the system did not send
	refused          bool  // the current one was
	askAt            Time  // when to ask
	progress         Time  // when una moved last, or something left after a pause
}

// outbox has the packets that the peer may ask for. The place of number n is
// n modulo Window, in the sets too.
type outbox struct {
	slot  [Window]int32
	order [Window]uint32 // with which it left last
	lost  uint64         // to leave again
	there uint64         // has come to the peer; its slot is gone
}

// receiving is the way from a peer.
type receiving struct {
	expected uint32 // all before has come
	known    uint32 // all before has been sent, as far as we know: not before expected
	seen     uint32 // the newest Order
	inbox    *inbox
	message  []byte // the beginning of a message
	length   uint32 // of which this is all; 0: of none
	last     Time   // when something came
}

// inbox has packets that came before others. Places are as in outbox.
type inbox struct {
	held   uint64
	packet [Window]early
}

type early struct {
	flags   Flags
	length  uint32 // of the message
	payload []byte
}

// owed is what a peer has to be told.
type owed struct {
	ack   bool // what has come, now
	nack  bool // what has not, unless it comes meanwhile
	ask   bool // that it is asked
	hello bool // that we are another than it thinks
	at    Time // when an acknowledgement is due that can wait
}

// place is where packet seq is in a ring.
func place(seq uint32) uint32 { return seq % Window }

// bit is the place of packet seq in a set.
func bit(seq uint32) uint64 { return 1 << place(seq) }

// from turns a set so that bit 0 is packet seq.
func from(set uint64, seq uint32) uint64 { return bits.RotateLeft64(set, -int(place(seq))) }

// lowest and highest are elements of a set that is not empty.
func lowest(set uint64) uint32  { return uint32(bits.TrailingZeros64(set)) }
func highest(set uint64) uint32 { return uint32(63 - bits.LeadingZeros64(set)) }

// have is the set of what has come behind what is expected, as packets say it.
func (r *receiving) have() uint64 {
	if r.inbox == nil {
		return 0
	}
	return from(r.inbox.held, r.expected) >> 1 // the expected one itself is never held
}

// halfway reports whether something is kept that needs more to come. Then its
// sender sends or asks until all is here, unless it is no more.
func (r *receiving) halfway() bool { return r.inbox != nil || r.length != 0 }

// missing reports whether something has been sent that has not come.
func (r *receiving) missing() bool { return after(r.known, r.expected) }

// heard notes that a packet with this Order has come.
func (r *receiving) heard(order uint32) {
	if after(order, r.seen) {
		r.seen = order
	}
}

// outstanding reports whether the peer may ask for something that has left.
func (s *sending) outstanding() bool { return after(s.fresh, s.una) }

// fragment is the payload of a packet that is not the last of its message.
func (s *sending) fragment() int { return int(s.mtu) - DataSize }

// pieces is how many packets a message of n bytes is.
func (s *sending) pieces(n int) int { return max(1, (n+s.fragment()-1)/s.fragment()) }

// room reports whether as many packets fit in the ring.
func (s *sending) room(n int) bool { return int(s.next-s.una)+n <= Window }

// cost is what a packet counts for in a window: see reliability.Window.
func cost(length int) int { return length + 256 }

// reset begins a peer anew, with packets of mtu bytes and a first number. The
// window is that for a peer of unknown buffer: others send to it as well.
func (p *peer) reset(mtu uint16, first uint32) {
	p.out = sending{una: first, fresh: first, next: first, echo: first, order: first + 1, mtu: mtu}
	p.out.window.Reset(int(mtu), 0)
	p.in = receiving{expected: first, known: first, seen: first}
	p.owe = owed{}
}
