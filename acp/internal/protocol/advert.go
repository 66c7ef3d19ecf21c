package protocol

// A message can bypass the slots if its receive is already posted (zero-copy receive; not in the ACP paper).
// The sending end has a board of adverts in front of its control block, at the end of its last slot, which is
// not used for data there. The receiver writes an advert of its buffer to the board ahead of the message.
// When a message begins, the sender reads the board: if the advert of this message is there, it writes the
// data into the advertised buffer, and the header with DirectFlag into a slot.

// BoardSlots is the number of adverts on a board. The advert of a message is at its number modulo BoardSlots.
const BoardSlots = 8

// AdvertWords is the length of an advert in words of 8 bytes.
const AdvertWords = 3

// AdvertSize and BoardSize are the lengths of an advert and of a board in bytes.
const (
	AdvertSize = 8 * AdvertWords
	BoardSize  = BoardSlots * AdvertSize
)

// Advert advertises a receive buffer.
type Advert struct {
	Number uint64 // of the message in the channel, from 0
	Addr   uint64 // as the adapter addresses it
	RKey   uint32
	Length uint32 // bytes: the rest of a longer message is dropped
}

// AdvertOffset returns the offset of a message's advert relative to the sender's control block.
func AdvertOffset(number uint64) int { return int(number%BoardSlots)*AdvertSize - BoardSize }

// EncodeWords encodes the advert. The last word must become visible last. The advert then stays unchanged
// until its message has been received.
func (p Advert) EncodeWords() [AdvertWords]uint64 {
	return [AdvertWords]uint64{p.Addr, uint64(p.RKey)<<32 | uint64(p.Length), p.Number + 1}
}

// ReadAdvert reads the advert of a message; word returns words relative to the control block. It returns
// false if the advert has not been written, or is empty.
func ReadAdvert(number uint64, word func(off int) uint64) (p Advert, ok bool) {
	at := AdvertOffset(number)
	if word(at+AdvertSize-8) != number+1 { // must be read before the other words
		return p, false
	}
	w := word(at + 8)
	return Advert{Number: number, Addr: word(at), RKey: uint32(w >> 32), Length: uint32(w)}, uint32(w) > 0
}
