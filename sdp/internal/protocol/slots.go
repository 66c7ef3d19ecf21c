package protocol

import "slices"

// slots are the receive buffers of a connection. Large ones hold a data message with its header;
// small ones are for modes whose data does not arrive in messages. When the large slots are
// resized, the new ones differ from the old ones in the generation bit of their number.
type slots struct {
	large, small bank
	old          bank     // large slots being retired
	oldInUse     int      // of these, posted or unread
	generation   uint32   // generation bit of the large slots
	freeList     []uint32 // to be posted, last one first
	posted       int
	queueDepth   int // depth of the receive queue
}

// A bank is an array of slots of equal size.
type bank struct {
	mem    Memory
	off    int // offset of the first slot
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

// find returns the bank and index of a slot, or nil if the number is invalid.
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

// bytes returns the first n bytes of a slot.
func (s *slots) bytes(slot, n int) []byte {
	b, i := s.find(slot)
	return b.mem.Bytes[b.off+i*b.stride:][:min(n, b.stride):b.stride]
}

// alloc allocates a free slot for posting.
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

// consume marks a posted slot as used. It returns false if the slot was not posted.
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

// dropSmall removes the small slots from the free list.
func (s *slots) dropSmall() {
	s.freeList = slices.DeleteFunc(s.freeList, func(i uint32) bool { return int(i) >= len(s.large.posted) })
}

// isOld reports whether a slot is being retired.
func (s *slots) isOld(slot int) bool {
	return slot&slotMask < len(s.large.posted) && uint32(slot&^slotMask) != s.generation
}

// release frees a slot. A retired slot is replaced by its successor.
func (s *slots) release(slot int) {
	if s.isOld(slot) {
		s.oldInUse--
		slot = int(s.generation) | slot&slotMask
	}
	s.freeList = append(s.freeList, uint32(slot))
}
