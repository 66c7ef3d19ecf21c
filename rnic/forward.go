package rnic

import (
	"github.com/softrnic/softrnic/internal/broker"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// decapsulatePacket replaces a datagram from another device at the address by the packet
// encapsulated in it, and reports whether there is one.
func (s *shard) decapsulatePacket(d *link.Datagram) bool {
	if d.Src != s.flows.local || d.Count() != 1 || !broker.IsEncapsulated(d.Buf) {
		return false
	}
	d.Src, d.TOS, d.ID, d.Buf = broker.Decapsulate(d.Buf)
	d.Unsealed = false
	d.Seg = len(d.Buf)
	return true
}

// forwardPacket sends packet i of a datagram, which is not encapsulated, to the devices at the
// address to which it belongs. It reports whether this device has no use for the packet: the
// kernel has merged packets, and has selected this device by the first one. Without GRO it has
// divided them again, so that each is the first of a datagram. Token and lock are held.
func (s *shard) forwardPacket(d *link.Datagram, i int) bool {
	raw := d.Packet(i)
	if slot := s.dev.member.Slot(); i > 0 && !broker.IsForSlot(raw, slot) || broker.IsMisdirected(raw, slot) {
		s.sendEncapsulated(d, i, broker.SlotOfPacket)
		return true
	}
	if broker.IsWithdrawal(raw) {
		for slot := range broker.Slots {
			if s.dev.member.HasManager(slot) {
				s.sendEncapsulated(d, i, slot)
			}
		}
	}
	return false
}

// sendEncapsulated sends packet i of a datagram to a slot. A packet that is too large is lost.
func (s *shard) sendEncapsulated(d *link.Datagram, i, slot int) {
	d.Seal(s.flows.local)
	raw := d.Packet(i)
	n := broker.EncapsulationLen + len(raw) + wire.ICRCLen
	if n > link.MaxPacket {
		return
	}
	b := s.tx.Next(&s.dev.ownPath, n)
	if b == nil {
		s.flush()
		b = s.tx.Next(&s.dev.ownPath, n)
	}
	broker.PutEncapsulation(b, slot, d.Src, d.TOS, d.ID+uint16(i))
	copy(b[broker.EncapsulationLen:], raw)
}
