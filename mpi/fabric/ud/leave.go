package ud

import (
	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

const (
	sendQueue   = 256 // work requests
	burst       = 32  // datagrams that are posted at a time
	inlineMax   = 256 // bytes of a datagram that travels in its work request
	signalEvery = 32  // of those, one is reported
)

// What a work request is, in the top byte of its WRID; then 24 bits of an index
// that depends on it, and 32 bits of its place in the send queue.
const (
	wrRecv   = iota + 1 // index: of the receive buffer
	wrInline            // nothing
	wrSlot              // index: of the core's slot
)

func wrid(kind, index int, ordinal uint32) uint64 {
	return uint64(kind)<<56 | uint64(index)<<32 | uint64(ordinal)
}

func unpack(id uint64) (kind, index int, ordinal uint32) {
	return int(id >> 56), int(id >> 32 & 0xffffff), uint32(id)
}

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() {
	f.recent = false
	if f.kept > 0 {
		f.drain(f.now())
	}
}

// drain sends what the core has to send, as far as the send queue has room.
func (f *Fabric) drain(now nack.Time) {
	f.kept = 0
	for {
		room := min(burst, sendQueue-int(f.posted-f.completed))
		n := f.core.Drain(now, f.packets[:room])
		if n == 0 {
			break
		}
		f.post(n)
	}
	f.arm(now)
}

// post posts the first n packets. Short ones are copied now; of the others the
// adapter has the slot until their completion.
func (f *Fabric) post(n int) {
	for i := range f.packets[:n] {
		p, wr := &f.packets[i], &f.wrs[i]
		l := &f.links[p.Peer]
		ordinal := f.posted + uint32(i)
		*wr = verbs.SendWR{Opcode: verbs.WRSend, AH: l.ah, RemoteQPN: l.qpn, RemoteQKey: l.qkey}
		if inline(p) {
			wr.Flags, wr.InlineData, wr.WRID = verbs.SendInline, p.Bytes, wrid(wrInline, 0, ordinal)
			if ordinal%signalEvery == 0 {
				wr.Flags |= verbs.SendSignaled
			}
			continue
		}
		f.sges[i] = f.slots.SGE(p.At, len(p.Bytes))
		wr.Flags, wr.SGList, wr.WRID = verbs.SendSignaled, f.sges[i:i+1], wrid(wrSlot, p.Slot, ordinal)
	}
	took, err := f.qp.PostSend(f.wrs[:n])
	f.posted += uint32(took)
	for i := range f.packets[:n] {
		if p := &f.packets[i]; i >= took || inline(p) {
			f.core.Done(p.Slot)
		}
	}
	if err != nil {
		f.fail(err)
	}
}

func inline(p *nack.Packet) bool { return p.Slot < 0 || len(p.Bytes) <= inlineMax }
