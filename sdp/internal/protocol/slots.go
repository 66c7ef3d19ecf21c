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
	oldInUse     int      // of these, posted or not read yet
	generation   uint32   // in the numbers of large ones
	freeList     []uint32 // to be posted, the last one first
	posted       int
	queueDepth   int // of the receive queue
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
	large := cfg.largeReceives()
	s.queueDepth = cfg.ReceiveQueue()
	s.large = bank{mem: cfg.Slots, stride: cfg.slotBytes(), posted: make([]bool, large)}
	s.small = bank{mem: cfg.Slots, off: large * cfg.slotBytes(), stride: smallSlotBytes, posted: make([]bool, cfg.Receives)}
	all := large + cfg.Receives
	s.freeList = make([]uint32, 0, all)
	for i := all - 1; i >= 0; i-- {
		s.freeList = append(s.freeList, uint32(i))
	}
}

// find finds a slot, nil if there is none of that number.
func (s *slots) find(slot int) (b *bank, i int) {
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
	b, i := s.find(slot)
	return b.mem.Bytes[b.off+i*b.stride:][:min(n, b.stride):b.stride]
}

// alloc takes a free slot.
func (s *slots) alloc() (slot int, ok bool) {
	if len(s.freeList) == 0 || s.posted == s.queueDepth {
		return 0, false
	}
	slot = int(s.freeList[len(s.freeList)-1])
	s.freeList = s.freeList[:len(s.freeList)-1]
	s.posted++
	b, i := s.find(slot)
	b.posted[i] = true
	return slot, true
}

// consume takes a slot that has been used. It is false if that was not posted.
func (s *slots) consume(wrid uint64) (slot int, ok bool) {
	if wrid > 1<<32-1 {
		return 0, false
	}
	b, i := s.find(int(wrid))
	if b == nil || !b.posted[i] {
		return 0, false
	}
	b.posted[i] = false
	s.posted--
	return int(wrid), true
}

// dropSmall takes the small ones out of use.
func (s *slots) dropSmall() {
	s.freeList = slices.DeleteFunc(s.freeList, func(i uint32) bool { return int(i) >= len(s.large.posted) })
}

// isOld reports whether a slot is going out of use.
func (s *slots) isOld(slot int) bool {
	return slot&slotMask < len(s.large.posted) && uint32(slot&^slotMask) != s.generation
}

// release gives a slot back. One that goes out of use is replaced.
func (s *slots) release(slot int) {
	if s.isOld(slot) {
		s.oldInUse--
		slot = int(s.generation) | slot&slotMask
	}
	s.freeList = append(s.freeList, uint32(slot))
}

// prepareReceives prepares n more receives, or as many as there are slots for.
func (c *Core) prepareReceives(n int) {
	for ; n > 0; n-- {
		slot, ok := c.slots.alloc()
		if !ok {
			return
		}
		b, i := c.slots.find(slot)
		c.in = append(c.in, verbs.RecvWR{WRID: uint64(slot), SGList: c.stageSGE(b.mem.SGE(b.off+i*b.stride, b.stride))})
	}
}

// refillReceives posts what the flow control wants posted.
func (c *Core) refillReceives() {
	c.prepareReceives(c.receiver.Receives() - c.slots.posted)
}
