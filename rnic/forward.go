package rnic

import (
	"github.com/softrnic/softrnic/internal/broker"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// forwardPacket sends packet i of a datagram to another device at the address, if it belongs
// there: the kernel has merged packets, and has selected this device by the first one. Token and
// lock are held.
func (s *shard) forwardPacket(d *link.Datagram, raw []byte, i int) bool {
	slot := s.dev.member.Slot()
	if broker.IsForSlot(raw, slot) {
		return false
	}
	n := broker.EnvelopeLen + len(raw) + wire.ICRCLen
	if n > link.MaxPacket {
		return false
	}
	b := s.tx.Next(&s.dev.ownPath, n)
	if b == nil {
		s.flush()
		b = s.tx.Next(&s.dev.ownPath, n)
	}
	broker.PutEnvelope(b, d.Src, d.TOS, d.ID+uint16(i))
	copy(b[broker.EnvelopeLen:], raw)
	return true
}

// openEnvelope replaces an envelope from another device at the address by the packet in it.
func (s *shard) openEnvelope(d *link.Datagram) {
	if d.Src == s.flows.local && d.Count() == 1 && broker.IsEnvelope(d.Buf) {
		d.Src, d.TOS, d.ID, d.Buf = broker.OpenEnvelope(d.Buf)
		d.Seg = len(d.Buf)
	}
}
