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

	// Bye instead of a length says that no message follows (the paper's message of
	// disconnection).
	Bye = ^uint64(0)

	// Placed in a length says that the message is where the receiver wants it already: see Place.
	Placed = 1 << 63
)

// Sender is the sending end of a ring: it owns the slots that messages leave from, and
// counts those of the receiver. All counts are of slots since the channel was made.
type Sender struct {
	size        uint32 // bytes of a slot, at both ends
	slots, ring uint32 // slots here and at the receiver
	busy        uint32 // slots of ours that were filled, and have not left
	put         uint64 // slots of the receiver that were written
	taken       uint64 // of these, those that it has taken: its head, mirrored
	used        uint64 // slots of ours that were filled
	messages    uint64 // that have left whole
	gone        uint64 // bytes of the message at hand that have left, and HeaderSize
}

// lead is where a message of n bytes begins in its first slot.
func lead(size uint32, n uint64) int {
	if size >= alignedFrom && n > uint64(size-HeaderSize) {
		return lineSize
	}
	return HeaderSize
}

// NewSender makes an end with slots of size bytes, a multiple of 8 of at least 16.
func NewSender(size, slots int) *Sender { return &Sender{size: uint32(size), slots: uint32(slots)} }

// Connect tells how many slots the receiver has.
func (s *Sender) Connect(ring int) { s.ring = uint32(ring) }

// Ring is how many slots the receiver has.
func (s *Sender) Ring() int { return int(s.ring) }

// Segment is what goes into a slot.
type Segment struct {
	Slot, Ring int  // which slot here, -1 of none, and at the receiver
	Lead       int  // bytes in front, of which the first HeaderSize are the length of the message: 0 of the others
	Off, N     int  // and then these bytes of it
	Last       bool // the message ends here
}

// Bytes is what has to be put: from the beginning of the slot.
func (g Segment) Bytes() int { return g.Lead + g.N }

// Room is how many slots of the receiver can be written, through ours.
func (s *Sender) Room() int { return min(int(s.slots)-int(s.busy), s.free()) }

// free is how many slots the receiver has.
func (s *Sender) free() int { return int(s.ring) - int(s.put-s.taken) }

// slot takes one of ours, and one of the receiver's.
func (s *Sender) slot(direct bool) (g Segment, ok bool) {
	g = Segment{Slot: -1, Ring: int(s.put % uint64(s.ring))}
	if !direct {
		if s.Room() <= 0 {
			return g, false
		}
		g.Slot = int(s.used % uint64(s.slots))
		s.used++
		s.busy++
	} else if s.free() <= 0 {
		return g, false
	}
	s.put++
	return g, true
}

// Next takes the next slot, for a message of n bytes, the same until the segment that is its
// Last. One that leaves from elsewhere, direct, takes none of ours. It is not ok when no slot is free at
// either end.
func (s *Sender) Next(n int, direct bool) (g Segment, ok bool) {
	if s.ring == 0 {
		return g, false
	}
	if g, ok = s.slot(direct); !ok {
		return g, false
	}
	if s.gone == 0 {
		g.Lead = lead(s.size, uint64(n))
		s.gone = HeaderSize
	}
	g.Off = int(s.gone - HeaderSize)
	g.N = min(int(s.size)-g.Lead, n-g.Off)
	s.gone += uint64(g.N)
	if g.Last = g.Off+g.N == n; g.Last {
		s.gone = 0
		s.messages++
	}
	return g, true
}

// Ahead is how many bytes the next segment of a message of n bytes will be, from the beginning of its slot.
func (s *Sender) Ahead(n int) int {
	if s.gone == 0 {
		return min(int(s.size), n+lead(s.size, uint64(n)))
	}
	return min(int(s.size), n-int(s.gone-HeaderSize))
}

// Begins is the number of the next message, if no part of one has left.
func (s *Sender) Begins() (number uint64, ok bool) { return s.messages, s.gone == 0 }

// Place takes the next slot for the word that a message is in its place.
func (s *Sender) Place() (g Segment, ok bool) {
	if g, ok = s.slot(true); ok {
		g.Lead, g.Last = HeaderSize, true
		s.messages++
	}
	return g, ok
}

// Bye takes the next slot for the word that no message follows.
func (s *Sender) Bye() (g Segment, ok bool) {
	if g, ok = s.slot(false); ok {
		g.Lead, g.Last = HeaderSize, true
	}
	return g, ok
}

// PutHeader writes the length of a message, or Bye, to the beginning of a slot.
func PutHeader(slot []byte, length uint64) { binary.LittleEndian.PutUint64(slot, length) }

// Put is how many slots were put: the tail that the receiver mirrors.
func (s *Sender) Put() uint64 { return s.put }

// Left says that the oldest of our slots under way has left, and may be filled again.
func (s *Sender) Left() { s.busy-- }

// Quiet reports whether all of our slots have left.
func (s *Sender) Quiet() bool { return s.busy == 0 }

// Taken hears the receiver's head: how many slots it has taken in all.
func (s *Sender) Taken(head uint64) error {
	if head < s.taken || head > s.put {
		return fmt.Errorf("%w: %d slots were taken and then %d, of %d", ErrBroken, s.taken, head, s.put)
	}
	s.taken = head
	return nil
}

// Credit hears that the receiver has taken n more.
func (s *Sender) Credit(n int) error { return s.Taken(s.taken + uint64(n)) }

// Receiver is the receiving end of a ring.
type Receiver struct {
	size, slots uint32
	taken       uint64 // slots
	full        uint32 // slots that were put besides
	owed        uint32 // slots that were taken, of which the sender does not know
	messages    uint64 // that were taken whole
	length, off uint64 // of the message at hand, if off is not 0: its length, and what has come, and HeaderSize
}

// NewReceiver makes an end with slots of size bytes.
func NewReceiver(size, slots int) *Receiver {
	return &Receiver{size: uint32(size), slots: uint32(slots)}
}

// Come hears the sender's tail: how many slots it has put in all.
func (r *Receiver) Come(tail uint64) error {
	if come := r.taken + uint64(r.full); tail < come || tail > r.taken+uint64(r.slots) {
		return fmt.Errorf("%w: %d slots had come and then %d, where %d are taken and there are %d", ErrBroken, come, tail, r.taken, r.slots)
	}
	r.full = uint32(tail - r.taken)
	return nil
}

// More hears that one more has come.
func (r *Receiver) More() error { return r.Come(r.taken + uint64(r.full) + 1) }

// Halfway reports whether a message has been taken in part.
func (r *Receiver) Halfway() bool { return r.off != 0 }

// Full is how many slots wait to be taken.
func (r *Receiver) Full() int { return int(r.full) }

// Slot is the next to be taken.
func (r *Receiver) Slot() int { return int(r.taken % uint64(r.slots)) }

// Piece is what a slot holds of a message.
type Piece struct {
	Bytes  []byte // in the slot
	Off    uint64 // where they belong in the message
	Length uint64 // of the message
	Last   bool   // the message ends here
	Bye    bool   // no message follows
	Placed bool   // all of it is in its place
}

// Take reads the next slot, whose memory it is given. It belongs to the sender again when that is
// told so.
func (r *Receiver) Take(slot []byte) (p Piece) {
	r.taken++
	r.full--
	r.owed++
	if r.off == 0 {
		switch r.length = binary.LittleEndian.Uint64(slot); {
		case r.length == Bye:
			return Piece{Bye: true}
		case r.length&Placed != 0:
			r.messages++
			return Piece{Length: r.length &^ Placed, Last: true, Placed: true}
		}
		r.off = HeaderSize
		slot = slot[lead(r.size, r.length):]
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

// Messages is how many were taken whole.
func (r *Receiver) Messages() uint64 { return r.messages }

// Owed is how many slots were taken that the sender does not know of.
func (r *Receiver) Owed() int { return int(r.owed) }

// Due reports whether enough are owed that the sender should know. It hears of half of the slots at a time, so
// at most twice for all that it has not looked at.
func (r *Receiver) Due() bool { return r.Owed() >= (int(r.slots)+1)/2 }

// Tell is the head that the sender hears of now, and how many slots it adds.
func (r *Receiver) Tell() (head uint64, n int) {
	n = r.Owed()
	r.owed = 0
	return r.taken, n
}
