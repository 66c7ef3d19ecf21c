package acp

import (
	"encoding/binary"
	"math"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// minAdvert is the minimum length in bytes of a receive that is advertised, and of the message before it.
const minAdvert = 32 << 10

// maxPut is the maximum length of a put in bytes.
const maxPut = 1 << 30

// nextAdvert returns the advert of the receive buffer for the next message, if the receiver has sent one.
func (ch *Channel) nextAdvert() (at protocol.Advert, ok bool) {
	number, begins := ch.send.NextMessage()
	if !ch.hasBoard || !begins {
		return at, false
	}
	return protocol.ReadAdvert(number, ch.controlWord)
}

// writeToAdvert writes a message directly into the advertised receive buffer, and its header into a slot
// behind it.
func (ch *Channel) writeToAdvert(r *Request, at protocol.Advert, g protocol.Segment) {
	ch.p.channels.directMessages++
	n := int(min(uint64(len(r.buf)), uint64(at.Length)))
	for off := 0; off < n; off += maxPut {
		a := ch.p.newAccess(protocol.Make(int(ch.peer), 0, 0), min(n-off, maxPut), (*slotPutOp)(ch))
		a.Kind, a.Addr, a.RKey, a.resolved = fabric.Put, at.Addr+uint64(off), at.RKey, true
		a.setMessage(r, off, a.n)
		ch.outstanding++
		ch.p.startAccess(a)
	}
	a := ch.newHeaderPut(ch.remoteSlot(g.Ring), uint64(len(r.buf))|protocol.DirectFlag, (*controlOp)(ch))
	if a.Lazy = true; ch.imm {
		a.Signal, a.Imm = true, protocol.EncodeImm(protocol.SlotFilled, 1, ch.remoteID)
	}
	ch.p.startAccess(a)
}

// advertiseReceives sends adverts for the posted receives whose messages have not started to arrive. Nothing
// behind a receive that may be canceled is advertised, because its message would go to another receive.
func (ch *Channel) advertiseReceives() {
	if !ch.hasBoard || !ch.lastWasLong || ch.recv == nil || ch.err != nil || ch.eof {
		return
	}
	number := ch.recv.MessageCount()
	most := number + protocol.BoardSlots
	for r := ch.first; r != nil && r.kind == recvKind && r.committed && number < most; r = r.next {
		if r.advertMem == nil && len(r.buf) >= minAdvert && uint64(len(r.buf)) <= math.MaxUint32 && !(r == ch.first && ch.recv.InMessage()) {
			ch.sendAdvert(r, number)
		}
		number++
	}
}

// sendAdvert registers the buffer of r and writes its advert to the sender's board. If the registration
// fails, the message goes through slots.
func (ch *Channel) sendAdvert(r *Request, number uint64) {
	mr, err := ch.p.net.Register(r.buf, true)
	if err != nil {
		return // the message goes through slots then
	}
	r.advertMem = mr
	at := protocol.Advert{Number: number, Addr: mr.Addr(), RKey: mr.RKey(), Length: uint32(len(r.buf))}
	a := ch.p.newAccess(ch.remote.Add(protocol.AdvertOffset(number)), protocol.AdvertSize, (*controlOp)(ch))
	a.Kind, a.Inline, a.Lazy = fabric.Put, a.words[:0], true
	for _, w := range at.EncodeWords() {
		a.Inline = binary.NativeEndian.AppendUint64(a.Inline, w)
	}
	ch.outstanding++
	ch.p.startAccess(a)
}
