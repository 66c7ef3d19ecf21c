package protocol

import (
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// slots are the receives of a connection. The large ones hold a message with
// data as the standard has it; the small ones are for designs whose data does
// not come in messages.
type slots struct {
	mem    Memory
	large  int // number of large ones, in front
	stride int
	free   []uint16 // to be posted, the last one first
	posted int
	room   int // of the receive queue
}

func (s *slots) init(cfg Config) {
	s.mem, s.large, s.stride, s.room = cfg.Slots, cfg.large(), cfg.slotBytes(), cfg.ReceiveQueue()
	all := s.large + cfg.Receives
	s.free = make([]uint16, 0, all)
	for i := all - 1; i >= 0; i-- {
		s.free = append(s.free, uint16(i))
	}
}

// place is where a slot lies.
func (s *slots) place(i int) (off, n int) {
	if i < s.large {
		return i * s.stride, s.stride
	}
	return s.large*s.stride + (i-s.large)*smallSlot, smallSlot
}

// bytes is the content of a slot.
func (s *slots) bytes(i, n int) []byte {
	off, size := s.place(i)
	return s.mem.Bytes[off : off+min(n, size)]
}

// take takes a free slot.
func (s *slots) take() (i int, ok bool) {
	if len(s.free) == 0 || s.posted == s.room {
		return 0, false
	}
	i = int(s.free[len(s.free)-1])
	s.free = s.free[:len(s.free)-1]
	s.posted++
	return i, true
}

// onlyLarge takes the small ones out of use.
func (s *slots) onlyLarge() {
	s.free = slices.DeleteFunc(s.free, func(i uint16) bool { return int(i) >= s.large })
}

// give gives a slot back.
func (s *slots) give(i int) { s.free = append(s.free, uint16(i)) }

// post prepares n more receives, or as many as there are slots for.
func (c *Core) post(n int) {
	for ; n > 0; n-- {
		i, ok := c.slots.take()
		if !ok {
			return
		}
		off, size := c.slots.place(i)
		c.in = append(c.in, verbs.RecvWR{WRID: uint64(i), SGList: c.sge(c.slots.mem.SGE(off, size))})
	}
}

// repost posts what the flow control wants posted.
func (c *Core) repost() {
	c.post(c.receiver.Receives() - c.slots.posted)
}
