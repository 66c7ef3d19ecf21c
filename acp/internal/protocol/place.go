package protocol

// A message need not go through slots: where a receive waits for it already, it can go
// to its memory. The paper has nothing of this. The sending end keeps a board, in front of its control
// block, at the end of its last slot, of which it has no use. The
// receiver tells there, ahead of the messages, where they are wanted. The sender looks when
// a message begins: if there is its Place, it puts the message there, and its length, with Placed, in a slot
// behind it.

// BoardSlots is how many places a board has: that of a message is at its number modulo this.
const BoardSlots = 8

// AdvertWords is the length of a place on a board, in words of 8 bytes.
const AdvertWords = 3

// PlaceSize and BoardSize are the lengths of a place and of a board in bytes.
const (
	AdvertSize = 8 * AdvertWords
	BoardSize  = BoardSlots * AdvertSize
)

// Advert is memory where a receiver wants a message.
type Advert struct {
	Number uint64 // of the message, of those of the channel, from 0
	Addr   uint64 // as the adapter has it
	RKey   uint32
	Length uint32 // bytes: of a longer message, the rest is dropped
}

// AdvertOffset is where the place of a message is, from the control block of the sending end.
func AdvertOffset(number uint64) int { return int(number%BoardSlots)*AdvertSize - BoardSize }

// EncodeWords lays it out. The last word becomes visible last. From then on nobody changes the place until its
// message has been taken.
func (p Advert) EncodeWords() [AdvertWords]uint64 {
	return [AdvertWords]uint64{p.Addr, uint64(p.RKey)<<32 | uint64(p.Length), p.Number + 1}
}

// ReadAdvert reads that of a message, by the words at offsets from the control block. It is not ok if it
// has not been told, or is of nothing.
func ReadAdvert(number uint64, word func(off int) uint64) (p Advert, ok bool) {
	at := AdvertOffset(number)
	if word(at+AdvertSize-8) != number+1 { // before others are looked at
		return p, false
	}
	w := word(at + 8)
	return Advert{Number: number, Addr: word(at), RKey: uint32(w >> 32), Length: uint32(w)}, uint32(w) > 0
}
