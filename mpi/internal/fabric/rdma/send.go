package rdma

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/verbs"
)

// Send implements protocol.Net.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	l := f.links[rank]
	if l == nil || !l.up {
		f.startConnect(rank)
		return false
	}
	if l.stream != nil {
		return f.sendInStream(l, h, payload)
	}
	if !l.mayNotify() || l.freeSendSlots() == 0 {
		f.waitForRoom(l)
		return false
	}
	if f.appendToBatch(l, h, payload) {
		return true
	}
	if l.batch.n > 0 && !f.flushBatch(l) || l.credits == 0 || l.freeSendSlots() == 0 {
		f.waitForRoom(l)
		return false
	}
	n := envelope.Size + len(payload)
	h.Credits = l.unreturnedCredits
	wr := &f.wr[0]
	fast := n <= int(l.remoteRing.size) && h.Kind != envelope.Hello
	if n <= inlineMax {
		marshalPacket(f.frame[:n], h, payload, fast)
		*wr = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: f.frame[:n], WRID: l.nextWRID(wrInline, 0)}
		if l.posted%signalInterval == 0 {
			wr.Flags |= verbs.SendSignaled
		}
	} else {
		s := f.sendBuffers.alloc()
		if s < 0 {
			f.waitForBuffer(l)
			return false
		}
		marshalPacket(f.sendBuffers.buffer(s)[:n], h, payload, fast)
		f.sge[0] = f.sendBuffers.sge(s, n)
		*wr = verbs.SendWR{Opcode: verbs.WRSend, Flags: f.sendBuffers.sendFlags(), SGList: f.sge[:], WRID: l.nextWRID(wrBuffer, s)}
	}
	if fast {
		f.prepareRingWrite(l, n)
	}
	if !f.postWR(l) {
		return true // failed: failLink has reported it
	}
	l.unreturnedCredits = 0
	l.credits--
	f.stats.packets++
	f.countRecent(l)
	return true
}

// countRecent counts the packets sent since the last Flush.
func (f *Fabric) countRecent(l *link) {
	if l.recent++; l.recent == 1 {
		f.recentLinks = append(f.recentLinks, l)
	}
}

// marshalPacket writes a packet to b: header and payload, or the reverse on the fast
// path, where the end is written last.
func marshalPacket(b []byte, h *envelope.Header, payload []byte, headerLast bool) {
	if headerLast {
		h.MarshalTo(b[copy(b, payload):])
		return
	}
	h.MarshalTo(b)
	copy(b[envelope.Size:], payload)
}

// postWR posts f.wr.
func (f *Fabric) postWR(l *link) bool {
	f.flushPostList(l)
	if _, err := l.qp.PostSend(f.wr[:]); err != nil {
		f.failLink(l, err)
		return false
	}
	l.posted++
	return true
}

// waitForBuffer notes that a link waits for a send buffer.
func (f *Fabric) waitForBuffer(l *link) {
	if !l.waitsForBuffer {
		l.waitsForBuffer = true
		f.bufferWaiters = append(f.bufferWaiters, l.rank)
	}
}

// The kind of a work request is the top byte of its WRID; 24 bits of an index that depends on the kind and 32 bits of the
// ordinal in its send queue follow.
const (
	wrRecv     = iota + 1 // index of the receive buffer
	wrInline              // no index
	wrBuffer              // index of the send buffer
	wrTransfer            // index of the transfer
	wrSegment             // a segment of a transfer except the last
	wrStripe              // index of the transfer, for a stripe on a rail
	wrStream              // streamIndex of the end of the message
	wrProbe               // no index
)

// signalInterval is the number of inline packets per signaled one.
const signalInterval = 32

func wrid(kind, index int, ordinal uint32) uint64 {
	return uint64(kind)<<56 | uint64(index)<<32 | uint64(ordinal)
}

func unpackWRID(id uint64) (kind, index int, ordinal uint32) {
	return int(id >> 56), int(id >> 32 & 0xffffff), uint32(id)
}

func (l *link) nextWRID(kind, index int) uint64 { return wrid(kind, index, l.posted) }
