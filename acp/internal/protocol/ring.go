package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrBroken says that the other end of a channel has told something impossible.
var ErrBroken = errors.New("the other end of the channel breaks the protocol")

// A message travels as its length in 8 bytes and then its bytes, cut into pieces of
// the size of a slot: so a slot holds nothing but what it was made for, and a message
// costs 8 bytes however long it is.
const (
	HeaderSize = 8

	// lineSize is where a message begins in its first slot that takes more than that, if they
	// are of some length: then it has the same place in a line of the cache here as there.
	lineSize    = 64
	alignedFrom = 4096

	// EOF instead of a length says that no message follows (the paper's message of
	// disconnection).
	EOF = ^uint64(0)

	// DirectFlag in a length says that the message is where the receiver wants it already: see Place.
	DirectFlag = 1 << 63
)

// Sender is the sending end of a ring: it owns the slots that messages leave from, and
// counts those of the receiver. All counts are of slots since the channel was made.
type Sender struct {
	size               uint32 // bytes of a slot, at both ends
	slots, remoteSlots uint32 // slots here and at the receiver
	inFlight           uint32 // slots of ours that were filled, and have not left
	tail               uint64 // slots of the receiver that were written
	head               uint64 // of these, those that it has taken: its head, mirrored
	used               uint64 // slots of ours that were filled
	messages           uint64 // that have left whole
	sentBytes          uint64 // bytes of the message at hand that have left, and HeaderSize
}

// dataOffset is where a message of n bytes begins in its first slot.
func dataOffset(size uint32, n uint64) int {
	if size >= alignedFrom && n > uint64(size-HeaderSize) {
		return lineSize
	}
	return HeaderSize
}

// NewSender makes an end with slots of size bytes, a multiple of 8 of at least 16.
func NewSender(size, slots int) *Sender { return &Sender{size: uint32(size), slots: uint32(slots)} }

// Connect tells how many slots the receiver has.
func (s *Sender) Connect(ring int) { s.remoteSlots = uint32(ring) }

// RemoteSlots is how many slots the receiver has.
func (s *Sender) RemoteSlots() int { return int(s.remoteSlots) }

// Segment is what goes into a slot.
type Segment struct {
	Slot, Ring int  // which slot here, -1 of none, and at the receiver
	HeaderLen  int  // bytes in front, of which the first HeaderSize are the length of the message: 0 of the others
	Off, N     int  // and then these bytes of it
	Last       bool // the message ends here
}

// Size is what has to be put: from the beginning of the slot.
func (g Segment) Size() int { return g.HeaderLen + g.N }

// FreeSlots is how many slots of the receiver can be written, through ours.
func (s *Sender) FreeSlots() int { return min(int(s.slots)-int(s.inFlight), s.remoteFree()) }

// remoteFree is how many slots the receiver has.
func (s *Sender) remoteFree() int { return int(s.remoteSlots) - int(s.tail-s.head) }

// allocSlot takes one of ours, and one of the receiver's.
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

// NextSegment takes the next slot, for a message of n bytes, the same until the segment that is its
// Last. One that leaves from elsewhere, direct, takes none of ours. It is not ok when no slot is free at
// either end.
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

// NextLen is how many bytes the next segment of a message of n bytes will be, from the beginning of its slot.
func (s *Sender) NextLen(n int) int {
	if s.sentBytes == 0 {
		return min(int(s.size), n+dataOffset(s.size, uint64(n)))
	}
	return min(int(s.size), n-int(s.sentBytes-HeaderSize))
}

// NextMessage is the number of the next message, if no part of one has left.
func (s *Sender) NextMessage() (number uint64, ok bool) { return s.messages, s.sentBytes == 0 }

// NextDirect takes the next slot for the word that a message is in its place.
func (s *Sender) NextDirect() (g Segment, ok bool) {
	if g, ok = s.allocSlot(true); ok {
		g.HeaderLen, g.Last = HeaderSize, true
		s.messages++
	}
	return g, ok
}

// NextEOF takes the next slot for the word that no message follows.
func (s *Sender) NextEOF() (g Segment, ok bool) {
	if g, ok = s.allocSlot(false); ok {
		g.HeaderLen, g.Last = HeaderSize, true
	}
	return g, ok
}

// PutHeader writes the length of a message, or Bye, to the beginning of a slot.
func PutHeader(slot []byte, length uint64) { binary.LittleEndian.PutUint64(slot, length) }

// Tail is how many slots were put: the tail that the receiver mirrors.
func (s *Sender) Tail() uint64 { return s.tail }

// SlotSent says that the oldest of our slots under way has left, and may be filled again.
func (s *Sender) SlotSent() { s.inFlight-- }

// AllSent reports whether all of our slots have left.
func (s *Sender) AllSent() bool { return s.inFlight == 0 }

// SetHead hears the receiver's head: how many slots it has taken in all.
func (s *Sender) SetHead(head uint64) error {
	if head < s.head || head > s.tail {
		return fmt.Errorf("%w: %d slots were taken and then %d, of %d", ErrBroken, s.head, head, s.tail)
	}
	s.head = head
	return nil
}

// AddCredits hears that the receiver has taken n more.
func (s *Sender) AddCredits(n int) error { return s.SetHead(s.head + uint64(n)) }

// Receiver is the receiving end of a ring.
type Receiver struct {
	size, slots    uint32
	head           uint64 // slots
	available      uint32 // slots that were put besides
	pendingCredits uint32 // slots that were taken, of which the sender does not know
	messages       uint64 // that were taken whole
	length, off    uint64 // of the message at hand, if off is not 0: its length, and what has come, and HeaderSize
}

// NewReceiver makes an end with slots of size bytes.
func NewReceiver(size, slots int) *Receiver {
	return &Receiver{size: uint32(size), slots: uint32(slots)}
}

// SetTail hears the sender's tail: how many slots it has put in all.
func (r *Receiver) SetTail(tail uint64) error {
	if come := r.head + uint64(r.available); tail < come || tail > r.head+uint64(r.slots) {
		return fmt.Errorf("%w: %d slots had come and then %d, where %d are taken and there are %d", ErrBroken, come, tail, r.head, r.slots)
	}
	r.available = uint32(tail - r.head)
	return nil
}

// AddSlot hears that one more has come.
func (r *Receiver) AddSlot() error { return r.SetTail(r.head + uint64(r.available) + 1) }

// InMessage reports whether a message has been taken in part.
func (r *Receiver) InMessage() bool { return r.off != 0 }

// AvailableSlots is how many slots wait to be taken.
func (r *Receiver) AvailableSlots() int { return int(r.available) }

// NextSlot is the next to be taken.
func (r *Receiver) NextSlot() int { return int(r.head % uint64(r.slots)) }

// Fragment is what a slot holds of a message.
type Fragment struct {
	Bytes  []byte // in the slot
	Off    uint64 // where they belong in the message
	Length uint64 // of the message
	Last   bool   // the message ends here
	EOF    bool   // no message follows
	Direct bool   // all of it is in its place
}

// TakeSlot reads the next slot, whose memory it is given. It belongs to the sender again when that is
// told so.
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

// MessageCount is how many were taken whole.
func (r *Receiver) MessageCount() uint64 { return r.messages }

// PendingCredits is how many slots were taken that the sender does not know of.
func (r *Receiver) PendingCredits() int { return int(r.pendingCredits) }

// CreditsDue reports whether enough are owed that the sender should know. It hears of half of the slots at a time, so
// at most twice for all that it has not looked at.
func (r *Receiver) CreditsDue() bool { return r.PendingCredits() >= (int(r.slots)+1)/2 }

// TakeCredits is the head that the sender hears of now, and how many slots it adds.
func (r *Receiver) TakeCredits() (head uint64, n int) {
	n = r.PendingCredits()
	r.pendingCredits = 0
	return r.head, n
}
