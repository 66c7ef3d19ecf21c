package rdma

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/verbs"
)

// A streamImm is the immediate data of a stream's message. Its highest bit is set, unlike that of a notice. With FlowRDMA it
// reports, since the last message of this direction, the bytes freed and the messages and notices handled; a message without
// data is a report only, and needs no credit.
//
//	 31 30 29          20 19              0
//	+--+--+--------------+-----------------+
//	| 1| 0| messages     | freed bytes / 8 |
//	+--+--+--------------+-----------------+
type streamImm uint32

const (
	streamFlag  streamImm = 1 << 31
	freedBits             = 20
	maxReported           = 1<<10 - 1 // messages
)

func (m streamImm) freed() uint64    { return uint64(m&(1<<freedBits-1)) * 8 }
func (m streamImm) messages() uint32 { return uint32(m >> freedBits & maxReported) }

// nextImm returns the immediate data of the next message.
func (s *stream) nextImm() streamImm {
	r, ok := s.receiver.(*flow.RDMAReceiver)
	if !ok {
		return streamFlag
	}
	freed, _ := r.ReportFreed(true)
	m := streamFlag | streamImm(s.unread)<<freedBits | streamImm((freed-s.reported)/8)
	s.reported, s.unread = freed, 0
	return m
}

// handleReport applies the rank's report, and returns false if the rank reports more than
// was sent.
func (s *stream) handleReport(m streamImm) bool {
	s.credited += m.messages()
	s.peerFreed += m.freed()
	return s.credits.Update(uint16(s.remote.n)+flow.ReservedCredits, s.credited) && s.rdma.SetFreed(s.peerFreed)
}

// handleStreamReceive handles a message or a notice of a rank with a stream.
func (f *Fabric) handleStreamReceive(l *link, wc *verbs.WC) {
	s, m := l.stream, streamImm(wc.Imm)
	switch {
	case l.failed:
	case wc.Opcode != verbs.WCRecvRDMAWithImm:
		f.failLink(l, fmt.Errorf("%w: SEND of %d bytes to a stream", envelope.ErrMalformed, wc.ByteLen))
	case m&streamFlag == 0:
		f.handleNotify(l, wc.Imm)
	case s.rdma != nil && !s.handleReport(m):
		f.failLink(l, fmt.Errorf("%w: report of %d messages and %d bytes, more than were sent", envelope.ErrMalformed, m.messages(), m.freed()))
	case wc.ByteLen > 0:
		s.unread++
		if err := s.receiver.Deliver(s.receiver.WriteOffset(), int(wc.ByteLen)); err != nil {
			f.failLink(l, fmt.Errorf("%w: %d bytes: %w", envelope.ErrMalformed, wc.ByteLen, err))
			return
		}
		for !l.failed && f.handleNextInStream(l) {
		}
	}
}

// handleNextInStream handles the next packet of a stream, and reports whether it was
// complete.
func (f *Fabric) handleNextInStream(l *link) bool {
	r := l.stream.receiver
	if r.Buffered() < envelope.Size {
		return false
	}
	header := r.Peek(f.frame[:envelope.Size])
	n := uint64(envelope.Size) + uint64(binary.LittleEndian.Uint32(header[28:])) // Header.Bytes
	if n > uint64(l.stream.in.Len())/2 {
		f.failLink(l, fmt.Errorf("%w: packet of %d bytes in a ring of %d", envelope.ErrMalformed, n, l.stream.in.Len()))
		return false
	}
	size := paddedSize(int(n))
	if r.Buffered() < size {
		return false
	}
	if len(f.wrapped) < size {
		f.wrapped = make([]byte, max(size, f.packetSize()))
	}
	b := r.Peek(f.wrapped[:size])
	f.handlePacket(l, b[:envelope.Size], b[envelope.Size:n], false)
	r.Discard(size)
	return true
}

// serveStream posts receives in the place of used ones, reports free bytes, and posts the
// messages for which the rank has reported some.
func (f *Fabric) serveStream(l *link) {
	s := l.stream
	if l.failed {
		return
	}
	if err := s.postReceives(l.qp, repostBatch); err != nil {
		f.failLink(l, err)
		return
	}
	if r, ok := s.receiver.(*flow.RDMAReceiver); ok && l.up {
		f.reportIfDue(l, r)
	}
	if s.sender.Unposted() > 0 && (s.rdma == nil || !f.host.Idle()) {
		f.postStream(l)
	}
	if l.coreWaiting {
		f.resumeLink(l)
	}
}

// postReceives posts receives if at least batch, or a quarter of all, are missing. They have
// no memory.
func (s *stream) postReceives(qp verbs.QP, batch int) error {
	want := s.receiver.Receives()
	if _, ok := s.receiver.(*flow.RDMAReceiver); ok {
		want += unpaidReceives + repostBatch
	}
	n := want - s.receives
	if n < max(1, min(batch, want/4)) {
		return nil
	}
	if _, err := qp.PostRecv(s.emptyRecv[:n]); err != nil {
		return fmt.Errorf("post %d receives: %w", n, err)
	}
	s.receives = want
	return nil
}

// reportIfDue reports free bytes if half of the ring or of the receives is unreported.
func (f *Fabric) reportIfDue(l *link, r *flow.RDMAReceiver) {
	s := l.stream
	if l.freeSendSlots() == 0 {
		return // later
	}
	if _, due := r.ReportFreed(2*int(s.unread) >= r.Receives()); !due {
		return
	}
	f.wr[0] = verbs.SendWR{Opcode: verbs.WRRDMAWriteWithImm, Flags: verbs.SendSignaled, Imm: uint32(s.nextImm()),
		RemoteAddr: s.remote.addr, RKey: s.remote.rkey, WRID: l.nextWRID(wrInline, 0)}
	if f.postWR(l) {
		f.stats.creditPackets++
	}
}
