package protocol

import (
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// slots are the receives of a connection. The large ones hold a message with
// data as the standard has it; the small ones are for designs whose data does
// not come in messages. When the large ones change their size (see resize) new
// ones take the numbers behind generation.
type slots struct {
	large, small bank
	old          bank     // large ones that are going out of use
	aging        int      // of these, posted or not read yet
	generation   uint32   // in the numbers of large ones
	free         []uint32 // to be posted, the last one first
	posted       int
	room         int // of the receive queue
}

// bank is a row of slots of a size.
type bank struct {
	mem    Memory
	off    int // of the first
	stride int
	posted []bool
}

const slotMask = 1<<16 - 1

func (s *slots) init(cfg *Config) {
	large := cfg.large()
	s.room = cfg.ReceiveQueue()
	s.large = bank{mem: cfg.Slots, stride: cfg.slotBytes(), posted: make([]bool, large)}
	s.small = bank{mem: cfg.Slots, off: large * cfg.slotBytes(), stride: smallSlot, posted: make([]bool, cfg.Receives)}
	all := large + cfg.Receives
	s.free = make([]uint32, 0, all)
	for i := all - 1; i >= 0; i-- {
		s.free = append(s.free, uint32(i))
	}
}

// bank finds a slot, nil if there is none of that number.
func (s *slots) bank(slot int) (b *bank, i int) {
	b, i = &s.large, slot&slotMask
	generation := uint32(slot &^ slotMask)
	switch {
	case i >= len(s.large.posted):
		b, i = &s.small, i-len(s.large.posted)
	case generation != s.generation:
		b = &s.old
	}
	if slot < 0 || i >= len(b.posted) {
		return nil, 0
	}
	return b, i
}

// bytes is the content of a slot.
func (s *slots) bytes(slot, n int) []byte {
	b, i := s.bank(slot)
	return b.mem.Bytes[b.off+i*b.stride:][:min(n, b.stride):b.stride]
}

// take takes a free slot.
func (s *slots) take() (slot int, ok bool) {
	if len(s.free) == 0 || s.posted == s.room {
		return 0, false
	}
	slot = int(s.free[len(s.free)-1])
	s.free = s.free[:len(s.free)-1]
	s.posted++
	b, i := s.bank(slot)
	b.posted[i] = true
	return slot, true
}

// arrived takes a slot that has been used. It is false if that was not posted.
func (s *slots) arrived(wrid uint64) (slot int, ok bool) {
	if wrid > 1<<32-1 {
		return 0, false
	}
	b, i := s.bank(int(wrid))
	if b == nil || !b.posted[i] {
		return 0, false
	}
	b.posted[i] = false
	s.posted--
	return int(wrid), true
}

// onlyLarge takes the small ones out of use.
func (s *slots) onlyLarge() {
	s.free = slices.DeleteFunc(s.free, func(i uint32) bool { return int(i) >= len(s.large.posted) })
}

// isOld reports whether a slot is going out of use.
func (s *slots) isOld(slot int) bool {
	return slot&slotMask < len(s.large.posted) && uint32(slot&^slotMask) != s.generation
}

// give gives a slot back. One that goes out of use is replaced.
func (s *slots) give(slot int) {
	if s.isOld(slot) {
		s.aging--
		slot = int(s.generation) | slot&slotMask
	}
	s.free = append(s.free, uint32(slot))
}

// post prepares n more receives, or as many as there are slots for.
func (c *Core) post(n int) {
	for ; n > 0; n-- {
		slot, ok := c.slots.take()
		if !ok {
			return
		}
		b, i := c.slots.bank(slot)
		c.in = append(c.in, verbs.RecvWR{WRID: uint64(slot), SGList: c.sge(b.mem.SGE(b.off+i*b.stride, b.stride))})
	}
}

// repost posts what the flow control wants posted.
func (c *Core) repost() {
	c.post(c.receiver.Receives() - c.slots.posted)
}
