package nack

import (
	"math/bits"

	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/reliability"
)

// A peer is the state of a remote end. State that exists only while messages
// are in flight is allocated separately, so that an idle peer is small.
type peer struct {
	number int
	open   bool   // OpenPeer was called: packets may be sent
	closed bool   // closed or failed in this epoch
	epoch  uint32 // incarnation, 0 while unknown

	out     sendState
	in      recvState
	control pendingControl
	timer   deadline.Entry[Time]

	active      bool  // in Core.active
	blocked     bool  // the caller waits for Writable: the window is full
	slotStarved bool  // the caller waits for slots: in Core.slotWaiters
	needed      uint8 // number of packets of the refused message
}

// A sendState is the sending half of a peer. Packets before una are
// acknowledged, packets before nextSend have been sent at least once, packets
// before nextQueue are in the ring.
type sendState struct {
	una, nextSend, nextQueue uint32
	txNum                    uint32 // transmission number of the next packet
	txEcho                   uint32 // highest transmission number the peer has received
	ring                     *sendRing
	inFlight                 int // bytes sent and neither acknowledged nor declared lost
	window                   reliability.Window
	rtt                      reliability.RTT
	mtu                      uint16
	sinceAckRequest          uint8 // packets since the last requested acknowledgement
	probes                   uint8 // probes since the last acknowledgement
	refusals                 uint8 // refused attempts since then
	attemptRefused           bool  // the system refused to send the current attempt
	probeAt                  Time  // time of the next probe
	lastProgress             Time  // last advance of una, or first packet sent after idleness
}

// A sendRing buffers packets for retransmission. The index of a packet, also in
// the bitmaps, is its sequence number modulo Window.
type sendRing struct {
	slot  [Window]int32
	txNum [Window]uint32 // last transmission number of the packet
	lost  uint64         // declared lost, to be retransmitted
	acked uint64         // selectively acknowledged; the slot is released
}

// A recvState is the receiving half of a peer.
type recvState struct {
	expected   uint32 // next sequence number in order
	knownSent  uint32 // packets before it are known to have been sent; at least expected
	maxTxNum   uint32 // highest transmission number received
	reorder    *reorderBuffer
	partial    []byte // fragments of the incomplete message
	messageLen uint32 // total length of the incomplete message; 0: there is none
	lastRecv   Time   // time of the last packet
}

// A reorderBuffer holds packets received out of order. Indexes are as in
// sendRing.
type reorderBuffer struct {
	held   uint64
	packet [Window]bufferedPacket
}

// A bufferedPacket is a packet in a reorderBuffer.
type bufferedPacket struct {
	flags   Flags
	length  uint32 // of the message
	payload []byte
}

// A pendingControl is the set of control packets to send to a peer.
type pendingControl struct {
	ack   bool // acknowledgement, immediately
	nack  bool // NACK, unless the missing packets arrive first
	probe bool // probe
	hello bool // Hello: the peer addresses an earlier incarnation
	ackAt Time // deadline of a delayed acknowledgement; 0: there is none
}

// slotIndex returns the ring index of packet seq.
func slotIndex(seq uint32) uint32 { return seq % Window }

// seqBit returns the bit of packet seq in a bitmap.
func seqBit(seq uint32) uint64 { return 1 << slotIndex(seq) }

// rotateSet rotates a bitmap so that bit 0 stands for packet seq.
func rotateSet(set uint64, seq uint32) uint64 { return bits.RotateLeft64(set, -int(slotIndex(seq))) }

// lowestBit returns the index of the lowest bit of a non-empty bitmap.
func lowestBit(set uint64) uint32 { return uint32(bits.TrailingZeros64(set)) }

// highestBit returns the index of the highest bit of a non-empty bitmap.
func highestBit(set uint64) uint32 { return uint32(63 - bits.LeadingZeros64(set)) }

// sackBits returns Header.Sack: the packets received after the expected one.
func (r *recvState) sackBits() uint64 {
	if r.reorder == nil {
		return 0
	}
	return rotateSet(r.reorder.held, r.expected) >> 1 // the expected packet itself is never buffered
}

// hasPartial reports whether packets are buffered that need more packets.
// Unless the sender has failed, it sends or probes until all have arrived.
func (r *recvState) hasPartial() bool { return r.reorder != nil || r.messageLen != 0 }

// hasGap reports whether packets are known to be missing.
func (r *recvState) hasGap() bool { return seqAfter(r.knownSent, r.expected) }

// noteTxNum records the transmission number of a received packet.
func (r *recvState) noteTxNum(order uint32) {
	if seqAfter(order, r.maxTxNum) {
		r.maxTxNum = order
	}
}

// hasUnacked reports whether sent packets are unacknowledged.
func (s *sendState) hasUnacked() bool { return seqAfter(s.nextSend, s.una) }

// fragmentSize returns the payload length of all fragments but the last.
func (s *sendState) fragmentSize() int { return int(s.mtu) - DataSize }

// packetCount returns the number of packets of an n-byte message.
func (s *sendState) packetCount(n int) int { return max(1, (n+s.fragmentSize()-1)/s.fragmentSize()) }

// hasRoom reports whether n more packets fit in the send window.
func (s *sendState) hasRoom(n int) bool { return int(s.nextQueue-s.una)+n <= Window }

// windowCost returns the size of a packet in the congestion window, see
// reliability.Window.
func windowCost(length int) int { return length + 256 }

// reset initializes a peer with packets of mtu bytes and sequence numbers from
// first on. The window is that of a peer with an unknown buffer, because other
// senders share the buffer.
func (p *peer) reset(mtu uint16, first uint32) {
	p.out = sendState{una: first, nextSend: first, nextQueue: first, txEcho: first, txNum: first + 1, mtu: mtu}
	p.out.window.Reset(int(mtu), 0)
	p.in = recvState{expected: first, knownSent: first, maxTxNum: first}
	p.control = pendingControl{}
}
