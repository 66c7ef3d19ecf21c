package acp

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/softrnic/softrnic/acp/fabric"
	"github.com/softrnic/softrnic/acp/protocol"
)

// placeMin is the length of a receive that tells its place, and of the message before it.
const placeMin = 32 << 10

// putMax is the length of a put at most.
const putMax = 1 << 30

// board is where the receiver of a channel tells the sender its places.
type board struct {
	mr fabric.Memory  // the sender's
	at protocol.Board // what the receiver knows of it

	long bool // the receiver's: the last message was
}

// memory is what it takes, in bytes.
func (b *board) memory() int {
	n := int(unsafe.Sizeof(*b))
	if b.mr != nil {
		n += len(b.mr.Bytes())
	}
	return n
}

// board is the board of a sending end with long messages.
func (ch *Channel) board() protocol.Board {
	c := &ch.p.channels
	b := c.boards[ch]
	if b == nil && int(ch.peer) != ch.p.rank {
		mr, err := ch.p.net.Register(make([]byte, protocol.Places*protocol.PlaceSize), true)
		if err != nil {
			return protocol.Board{} // messages go through slots, then
		}
		b = &board{mr: mr, at: protocol.Board{Addr: mr.Addr(), RKey: mr.RKey()}}
		c.boards[ch] = b
	}
	if b == nil {
		return protocol.Board{}
	}
	return b.at
}

// placeOf is where the receiver wants the message that is to leave next, if that is known. The message leaves
// from where it is, if direct is set.
func (ch *Channel) placeOf(direct bool) (at protocol.Place, ok bool) {
	if !direct {
		return at, false
	}
	b := ch.p.channels.boards[ch]
	number, begins := ch.send.Begins()
	if b == nil || !begins {
		return at, false
	}
	return protocol.ReadPlace(number, func(i int) uint64 { return b.mr.LoadUint64(8 * i) })
}

// toPlace puts a message where it is wanted, and behind it the word of that.
func (ch *Channel) toPlace(r *Request, at protocol.Place, g protocol.Segment) {
	ch.p.channels.placed++
	n := int(min(uint64(len(r.buf)), uint64(at.Length)))
	for off := 0; off < n; off += putMax {
		a := ch.known(at.Addr+uint64(off), at.RKey, min(n-off, putMax), (*slotPut)(ch))
		a.Mem, a.Off, a.N, a.request = r.mr.mr, off, a.n, r
		r.mr.under++
		ch.p.start(a)
	}
	a := ch.putLead(ch.ring(g.Ring), g, uint64(len(r.buf))|protocol.Placed, (*answering)(ch))
	if a.Lazy = true; ch.imm {
		a.Signal, a.Imm = true, protocol.Imm(protocol.Filled, 1, ch.far)
	}
	ch.p.start(a)
}

// known is a put of n bytes to memory at the other end that has no global address.
func (ch *Channel) known(addr uint64, rkey uint32, n int, owner accessOwner) *access {
	a := ch.p.newAccess(protocol.Make(int(ch.peer), 0, 0), n, owner)
	a.Kind, a.Addr, a.RKey, a.known, a.again = fabric.Put, addr, rkey, true, true
	ch.under++
	return a
}

// notes has a receiving end learn from a message where the board is, and whether messages are long.
func (ch *Channel) notes(g protocol.Piece) {
	b := ch.p.channels.boards[ch]
	if b == nil && g.Board.Addr != 0 {
		b = &board{at: g.Board}
		ch.p.channels.boards[ch] = b
	}
	if b != nil {
		b.long = g.Length >= placeMin
	}
}

// offer tells the sender where messages are wanted that it has not begun to send, as far as is known. Nothing is
// offered behind a receive that may be withdrawn: its message would be another's.
func (ch *Channel) offer() {
	if len(ch.p.channels.boards) == 0 || ch.recv == nil || ch.err != nil || ch.bye {
		return
	}
	b := ch.p.channels.boards[ch]
	if b == nil || !b.long {
		return
	}
	number := ch.recv.Messages()
	most := number + protocol.Places
	for r := ch.first; r != nil && r.kind == receiving && r.stays && number < most; r = r.next {
		if r.place == nil && len(r.buf) >= placeMin && !(r == ch.first && ch.recv.Halfway()) {
			ch.tellPlace(b, r, number)
		}
		number++
	}
}

func (ch *Channel) tellPlace(b *board, r *Request, number uint64) {
	mr, err := ch.p.net.Register(r.buf, true)
	if err != nil {
		return // through slots, then
	}
	r.place = mr
	at := protocol.Place{Number: number, Addr: mr.Addr(), RKey: mr.RKey(), Length: uint32(min(uint64(len(r.buf)), math.MaxUint32))}
	a := ch.known(b.at.At(number), b.at.RKey, protocol.PlaceSize, (*answering)(ch))
	a.Inline, a.Lazy = a.words[:0], true
	for _, w := range at.Words() {
		a.Inline = binary.NativeEndian.AppendUint64(a.Inline, w)
	}
	ch.p.start(a)
}
