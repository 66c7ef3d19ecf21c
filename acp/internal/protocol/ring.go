package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrBroken means that the other end of a channel sent an impossible index or reply.
var ErrBroken = errors.New("acp: protocol violation by the other channel end")

// A message is sent as its length in 8 bytes followed by its data, cut into segments of the size of a slot.
// So a message costs 8 bytes of overhead whatever its length.
const (
	HeaderSize = 8

	// lineSize is the offset of the data in the first of several slots of at least alignedFrom bytes. The
	// data then has the same offset in a cache line at both ends.
	lineSize    = 64
	alignedFrom = 4096

	// EOF instead of a length means that no message follows (the disconnection message of the ACP paper).
	EOF = ^uint64(0)

	// DirectFlag in a length means that the message was written into the advertised buffer: see Advert.
	DirectFlag = 1 << 63
)

// Sender is the sending end of a ring. It allocates its own slots and those of the receiver. All counts are
// of slots since the channel was created.
type Sender struct {
	size               uint32 // of a slot, at both ends, in bytes
	slots, remoteSlots uint32 // numbers of slots here and at the receiver
	inFlight           uint32 // local slots written and not sent yet
	tail               uint64 // receiver's slots written
	head               uint64 // receiver's slots consumed, as mirrored by it
	used               uint64 // local slots written
	messages           uint64 // messages sent completely
	sentBytes          uint64 // HeaderSize plus the bytes sent of the current message, or 0
}

// dataOffset returns the offset of the data of a message of n bytes in its first slot.
func dataOffset(size uint32, n uint64) int {
	if size >= alignedFrom && n > uint64(size-HeaderSize) {
		return lineSize
	}
	return HeaderSize
}

// NewSender returns an end with slots of size bytes, a multiple of 8 and at least 16.
func NewSender(size, slots int) *Sender { return &Sender{size: uint32(size), slots: uint32(slots)} }

// Connect sets the number of the receiver's slots.
func (s *Sender) Connect(ring int) { s.remoteSlots = uint32(ring) }

// RemoteSlots returns the number of the receiver's slots.
func (s *Sender) RemoteSlots() int { return int(s.remoteSlots) }

// Segment is the content of a slot.
type Segment struct {
	Slot, Ring int  // slot numbers here, or -1, and at the receiver
	HeaderLen  int  // bytes before the data, which begin with the message's length; 0 in later segments
	Off, N     int  // the data: N bytes at offset Off of the message
	Last       bool // the message ends here
}

// Size returns the length of the segment in its slot in bytes.
func (g Segment) Size() int { return g.HeaderLen + g.N }

// FreeSlots returns the number of slots that are free at both ends.
func (s *Sender) FreeSlots() int { return min(int(s.slots)-int(s.inFlight), s.remoteFree()) }

// remoteFree returns the number of free slots at the receiver.
func (s *Sender) remoteFree() int { return int(s.remoteSlots) - int(s.tail-s.head) }

// allocSlot allocates a slot of the receiver, and a local one unless direct.
func (s *Sender) allocSlot(direct bool) (g Segment, ok bool) {
	g = Segment{Slot: -1, Ring: int(s.tail % uint64(s.remoteSlots))}
	if !direct {
		if s.FreeSlots() <= 0 {
			return g, false
		}
		g.Slot = int(s.used % uint64(s.slots))
		s.used++
		s.inFlight++
	} else if s.remoteFree() <= 0 {
		return g, false
	}
	s.tail++
	return g, true
}

// NextSegment allocates the next segment of a message of n bytes; n stays the same until the Last segment. A
// direct segment needs no local slot. It returns false if no slot is free.
func (s *Sender) NextSegment(n int, direct bool) (g Segment, ok bool) {
	if s.remoteSlots == 0 {
		return g, false
	}
	if g, ok = s.allocSlot(direct); !ok {
		return g, false
	}
	if s.sentBytes == 0 {
		g.HeaderLen = dataOffset(s.size, uint64(n))
		s.sentBytes = HeaderSize
	}
	g.Off = int(s.sentBytes - HeaderSize)
	g.N = min(int(s.size)-g.HeaderLen, n-g.Off)
	s.sentBytes += uint64(g.N)
	if g.Last = g.Off+g.N == n; g.Last {
		s.sentBytes = 0
		s.messages++
	}
	return g, true
}

// NextLen returns the length in its slot of the next segment of a message of n bytes.
func (s *Sender) NextLen(n int) int {
	if s.sentBytes == 0 {
		return min(int(s.size), n+dataOffset(s.size, uint64(n)))
	}
	return min(int(s.size), n-int(s.sentBytes-HeaderSize))
}

// NextMessage returns the number of the next message, and whether none is partly sent.
func (s *Sender) NextMessage() (number uint64, ok bool) { return s.messages, s.sentBytes == 0 }

// NextDirect allocates a slot for the header of a message that was written to its advertised buffer.
func (s *Sender) NextDirect() (g Segment, ok bool) {
	if g, ok = s.allocSlot(true); ok {
		g.HeaderLen, g.Last = HeaderSize, true
		s.messages++
	}
	return g, ok
}

// NextEOF allocates a slot for EOF.
func (s *Sender) NextEOF() (g Segment, ok bool) {
	if g, ok = s.allocSlot(false); ok {
		g.HeaderLen, g.Last = HeaderSize, true
	}
	return g, ok
}

// PutHeader writes the length of a message, or EOF, to the beginning of a slot.
func PutHeader(slot []byte, length uint64) { binary.LittleEndian.PutUint64(slot, length) }

// Tail returns the number of slots written, which the receiver mirrors.
func (s *Sender) Tail() uint64 { return s.tail }

// SlotSent frees the oldest local slot in flight.
func (s *Sender) SlotSent() { s.inFlight-- }

// AllSent reports whether no local slot is in flight.
func (s *Sender) AllSent() bool { return s.inFlight == 0 }

// SetHead sets the receiver's head: the number of slots that it has consumed.
func (s *Sender) SetHead(head uint64) error {
	if head < s.head || head > s.tail {
		return fmt.Errorf("%w: head moves from %d to %d, tail is %d", ErrBroken, s.head, head, s.tail)
	}
	s.head = head
	return nil
}

// AddCredits adds n slots to the receiver's head.
func (s *Sender) AddCredits(n int) error { return s.SetHead(s.head + uint64(n)) }

// Receiver is the receiving end of a ring.
type Receiver struct {
	size, slots    uint32
	head           uint64 // slots consumed
	available      uint32 // slots written and not consumed
	pendingCredits uint32 // slots consumed, of which the sender has not been notified
	messages       uint64 // messages received completely
	length, off    uint64 // of the current message if off is not 0: its length, and HeaderSize plus the bytes received
}

// NewReceiver returns an end with slots of size bytes.
func NewReceiver(size, slots int) *Receiver {
	return &Receiver{size: uint32(size), slots: uint32(slots)}
}

// SetTail sets the sender's tail: the number of slots that it has written.
func (r *Receiver) SetTail(tail uint64) error {
	if come := r.head + uint64(r.available); tail < come || tail > r.head+uint64(r.slots) {
		return fmt.Errorf("%w: tail moves from %d to %d, head is %d of %d slots", ErrBroken, come, tail, r.head, r.slots)
	}
	r.available = uint32(tail - r.head)
	return nil
}

// AddSlot adds one slot to the sender's tail.
func (r *Receiver) AddSlot() error { return r.SetTail(r.head + uint64(r.available) + 1) }

// InMessage reports whether a message has been received in part.
func (r *Receiver) InMessage() bool { return r.off != 0 }

// AvailableSlots returns the number of slots to consume.
func (r *Receiver) AvailableSlots() int { return int(r.available) }

// NextSlot returns the number of the next slot to consume.
func (r *Receiver) NextSlot() int { return int(r.head % uint64(r.slots)) }

// Fragment is the part of a message in a slot.
type Fragment struct {
	Bytes  []byte // in the slot
	Off    uint64 // offset in the message
	Length uint64 // of the message
	Last   bool   // the message ends here
	EOF    bool   // no message follows
	Direct bool   // the message is in the advertised buffer
}

// TakeSlot consumes the next slot, whose memory is passed. The sender may reuse the slot after TakeCredits.
func (r *Receiver) TakeSlot(slot []byte) (p Fragment) {
	r.head++
	r.available--
	r.pendingCredits++
	if r.off == 0 {
		switch r.length = binary.LittleEndian.Uint64(slot); {
		case r.length == EOF:
			return Fragment{EOF: true}
		case r.length&DirectFlag != 0:
			r.messages++
			return Fragment{Length: r.length &^ DirectFlag, Last: true, Direct: true}
		}
		r.off = HeaderSize
		slot = slot[dataOffset(r.size, r.length):]
	}
	p.Off, p.Length = r.off-HeaderSize, r.length
	n := min(uint64(len(slot)), r.length-p.Off)
	p.Bytes = slot[:n]
	r.off += n
	if p.Last = p.Off+n == r.length; p.Last {
		r.off = 0
		r.messages++
	}
	return p
}

// MessageCount returns the number of messages received completely.
func (r *Receiver) MessageCount() uint64 { return r.messages }

// PendingCredits returns the number of consumed slots of which the sender has not been notified.
func (r *Receiver) PendingCredits() int { return int(r.pendingCredits) }

// CreditsDue reports whether a credit update should be sent: when half of the slots are pending, so at most
// two updates are outstanding.
func (r *Receiver) CreditsDue() bool { return r.PendingCredits() >= (int(r.slots)+1)/2 }

// TakeCredits returns the head to mirror, and the number of slots it adds.
func (r *Receiver) TakeCredits() (head uint64, n int) {
	n = r.PendingCredits()
	r.pendingCredits = 0
	return r.head, n
}
