package protocol

import "encoding/binary"

// A message need not go through slots: where a receive waits for it already, it can go
// to its memory. The paper has nothing of this. The sending end of a channel with long messages
// has a Board, and says where that is in front of each long message that goes through slots. The
// receiver then tells there, ahead of the messages, where they are wanted. The sender looks when
// a message begins: if there is its Place, it puts the message there, and its length, with Placed, in a slot
// behind it.

// Places is how many places a board has: that of a message is at its number modulo this.
const Places = 8

// PlaceWords is the length of a place on a board, in words of 8 bytes.
const PlaceWords = 3

// PlaceSize is the same in bytes.
const PlaceSize = 8 * PlaceWords

// Place is memory where a receiver wants a message.
type Place struct {
	Number uint64 // of the message, of those of the channel, from 0
	Addr   uint64 // as the adapter has it
	RKey   uint32
	Length uint32 // bytes: of a longer message, the rest is dropped
}

// Words lays it out. The last word becomes visible last. From then on nobody changes the place until its
// message has been taken.
func (p Place) Words() [PlaceWords]uint64 {
	return [PlaceWords]uint64{p.Addr, uint64(p.RKey)<<32 | uint64(p.Length), p.Number + 1}
}

// ReadPlace reads that of a message from a board, by its words. It is not ok if it has not been told.
func ReadPlace(number uint64, word func(i int) uint64) (p Place, ok bool) {
	at := int(number % Places * PlaceWords)
	if word(at+PlaceWords-1) != number+1 { // before others are looked at
		return p, false
	}
	w := word(at + 1)
	return Place{Number: number, Addr: word(at), RKey: uint32(w >> 32), Length: uint32(w)}, true
}

// Board is where places are told, Places of them. Its zero value is none.
type Board struct {
	Addr uint64
	RKey uint32
}

// At is where the place of a message is on the board.
func (b Board) At(number uint64) uint64 { return b.Addr + number%Places*PlaceSize }

// appendBoard appends it as it stands behind the length of a message.
func appendBoard(to []byte, b Board) []byte {
	to = binary.LittleEndian.AppendUint64(to, b.Addr)
	return binary.LittleEndian.AppendUint32(to, b.RKey)
}

func parseBoard(b []byte) Board {
	return Board{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])}
}
