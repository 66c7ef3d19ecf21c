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
	closed bool   // closed, or given up, in this epoch
	epoch  uint32 // of its life, 0 as long as we do not know

	out     sendState
	in      recvState
	control pendingControl
	timer   timer

	active      bool  // in Core.active
	blocked     bool  // the caller wants to hear of room in the ring
	slotStarved bool  // and of slots: in Core.slotWaiters
	needed      uint8 // packets that it wants room for
}

// sendState is the way to a peer. Numbers: all before una has come there, all before
// fresh has left at least once, all before next is in the ring.
type sendState struct {
	una, nextSend, nextQueue uint32
	txNum                    uint32 // of the next that leaves
	txEcho                   uint32 // the newest that has come there
	ring                     *sendRing
	inFlight                 int // bytes that have left, and are neither there nor known to be lost
	window                   reliability.Window
	rtt                      reliability.RTT
	mtu                      uint16
	sinceAckRequest          uint8 // packets since one that wanted an answer
	probes                   uint8 // since an answer
	refusals                 uint8 // attempts since then that the system did not send
	attemptRefused           bool  // the current one was
	probeAt                  Time  // when to ask
	lastProgress             Time  // when una moved last, or something left after a pause
}

// sendRing has the packets that the peer may ask for. The place of number n is
// n modulo Window, in the sets too.
type sendRing struct {
	slot  [Window]int32
	txNum [Window]uint32 // with which it left last
	lost  uint64         // to leave again
	acked uint64         // has come to the peer; its slot is gone
}

// recvState is the way from a peer.
type recvState struct {
	expected   uint32 // all before has come
	knownSent  uint32 // all before has been sent, as far as we know: not before expected
	maxTxNum   uint32 // the newest Order
	reorder    *reorderBuffer
	partial    []byte // the beginning of a message
	messageLen uint32 // of which this is all; 0: of none
	lastRecv   Time   // when something came
}

// reorderBuffer has packets that came before others. Places are as in outbox.
type reorderBuffer struct {
	held   uint64
	packet [Window]bufferedPacket
}

type bufferedPacket struct {
	flags   Flags
	length  uint32 // of the message
	payload []byte
}

// pendingControl is what a peer has to be told.
type pendingControl struct {
	ack   bool // what has come, now
	nack  bool // what has not, unless it comes meanwhile
	probe bool // that it is asked
	hello bool // that we are another than it thinks
	ackAt Time // when an acknowledgement is due that can wait
}

// slotIndex is where packet seq is in a ring.
func slotIndex(seq uint32) uint32 { return seq % Window }

// seqBit is the place of packet seq in a set.
func seqBit(seq uint32) uint64 { return 1 << slotIndex(seq) }

// rotateSet turns a set so that bit 0 is packet seq.
func rotateSet(set uint64, seq uint32) uint64 { return bits.RotateLeft64(set, -int(slotIndex(seq))) }

// lowestBit and highest are elements of a set that is not empty.
func lowestBit(set uint64) uint32  { return uint32(bits.TrailingZeros64(set)) }
func highestBit(set uint64) uint32 { return uint32(63 - bits.LeadingZeros64(set)) }

// sackBits is the set of what has come behind what is expected, as packets say it.
func (r *recvState) sackBits() uint64 {
	if r.reorder == nil {
		return 0
	}
	return rotateSet(r.reorder.held, r.expected) >> 1 // the expected one itself is never held
}

// hasPartial reports whether something is kept that needs more to come. Then its
// sender sends or asks until all is here, unless it is no more.
func (r *recvState) hasPartial() bool { return r.reorder != nil || r.messageLen != 0 }

// hasGap reports whether something has been sent that has not come.
func (r *recvState) hasGap() bool { return seqAfter(r.knownSent, r.expected) }

// noteTxNum notes that a packet with this Order has come.
func (r *recvState) noteTxNum(order uint32) {
	if seqAfter(order, r.maxTxNum) {
		r.maxTxNum = order
	}
}

// hasUnacked reports whether the peer may ask for something that has left.
func (s *sendState) hasUnacked() bool { return seqAfter(s.nextSend, s.una) }

// fragmentSize is the payload of a packet that is not the last of its message.
func (s *sendState) fragmentSize() int { return int(s.mtu) - DataSize }

// packetCount is how many packets a message of n bytes is.
func (s *sendState) packetCount(n int) int { return max(1, (n+s.fragmentSize()-1)/s.fragmentSize()) }

// hasRoom reports whether as many packets fit in the ring.
func (s *sendState) hasRoom(n int) bool { return int(s.nextQueue-s.una)+n <= Window }

// windowCost is what a packet counts for in a window: see reliability.Window.
func windowCost(length int) int { return length + 256 }

// reset begins a peer anew, with packets of mtu bytes and a first number. The
// window is that for a peer of unknown buffer: others send to it as well.
func (p *peer) reset(mtu uint16, first uint32) {
	p.out = sendState{una: first, nextSend: first, nextQueue: first, txEcho: first, txNum: first + 1, mtu: mtu}
	p.out.window.Reset(int(mtu), 0)
	p.in = recvState{expected: first, knownSent: first, maxTxNum: first}
	p.control = pendingControl{}
}
