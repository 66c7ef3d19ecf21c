package acp

import (
	"encoding/binary"
	"math"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// placeMin is the length of a receive that tells its place, and of the message before it.
const placeMin = 32 << 10

// putMax is the length of a put at most.
const putMax = 1 << 30

// placeOf is where the receiver wants the message that is to leave next, if that is known.
func (ch *Channel) placeOf() (at protocol.Place, ok bool) {
	number, begins := ch.send.Begins()
	if !ch.board || !begins {
		return at, false
	}
	return protocol.ReadPlace(number, ch.control)
}

// toPlace puts a message where it is wanted, and behind it the word of that.
func (ch *Channel) toPlace(r *Request, at protocol.Place, g protocol.Segment) {
	ch.p.channels.placed++
	n := int(min(uint64(len(r.buf)), uint64(at.Length)))
	for off := 0; off < n; off += putMax {
		a := ch.p.newAccess(protocol.Make(int(ch.peer), 0, 0), min(n-off, putMax), (*slotPut)(ch))
		a.Kind, a.Addr, a.RKey, a.known = fabric.Put, at.Addr+uint64(off), at.RKey, true
		a.carry(r, off, a.n)
		ch.under++
		ch.p.start(a)
	}
	a := ch.putHeader(ch.ring(g.Ring), uint64(len(r.buf))|protocol.Placed, (*answering)(ch))
	if a.Lazy = true; ch.imm {
		a.Signal, a.Imm = true, protocol.Imm(protocol.Filled, 1, ch.far)
	}
	ch.p.start(a)
}

// offer tells the sender where messages are wanted that it has not begun to send, as far as is known. Nothing is
// offered behind a receive that may be withdrawn: its message would be another's.
func (ch *Channel) offer() {
	if !ch.board || !ch.long || ch.recv == nil || ch.err != nil || ch.bye {
		return
	}
	number := ch.recv.Messages()
	most := number + protocol.Places
	for r := ch.first; r != nil && r.kind == receiving && r.stays && number < most; r = r.next {
		if r.place == nil && len(r.buf) >= placeMin && uint64(len(r.buf)) <= math.MaxUint32 && !(r == ch.first && ch.recv.Halfway()) {
			ch.tellPlace(r, number)
		}
		number++
	}
}

func (ch *Channel) tellPlace(r *Request, number uint64) {
	mr, err := ch.p.net.Register(r.buf, true)
	if err != nil {
		return // through slots, then
	}
	r.place = mr
	at := protocol.Place{Number: number, Addr: mr.Addr(), RKey: mr.RKey(), Length: uint32(len(r.buf))}
	a := ch.p.newAccess(ch.remote.Add(protocol.PlaceOffset(number)), protocol.PlaceSize, (*answering)(ch))
	a.Kind, a.Inline, a.Lazy = fabric.Put, a.words[:0], true
	for _, w := range at.Words() {
		a.Inline = binary.NativeEndian.AppendUint64(a.Inline, w)
	}
	ch.under++
	ch.p.start(a)
}
