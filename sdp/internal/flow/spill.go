package flow

// A spill holds unread bytes moved out of a ring. Its memory grows as needed and is released when
// all bytes have been read.
type spill struct {
	mem []byte
	off int // offset of the next byte to read
}

func (s *spill) len() int { return len(s.mem) - s.off }

func (s *spill) readInto(p []byte) int {
	n := copy(p, s.mem[s.off:])
	s.off += n
	if s.off == len(s.mem) {
		*s = spill{}
	}
	return n
}

// grow appends n bytes and returns them. It discards the bytes already read.
func (s *spill) grow(n int) []byte {
	s.mem = s.mem[:copy(s.mem, s.mem[s.off:])]
	s.off = 0
	s.mem = append(s.mem, make([]byte, n)...)
	return s.mem[len(s.mem)-n:]
}

// Spill moves unread bytes out of the ring, up to a total of most bytes outside of it, and
// returns their number, which is free in the ring again. The order of Read is unchanged.
func (r *NICReceiver) Spill(most int) int {
	n := min(most-r.Spilled(), r.len())
	if n <= 0 {
		return 0
	}
	to := &r.spillBeforeOld
	if r.old.mem != nil { // old frees no bytes of the ring and remains
		to = &r.spillAfterOld
	}
	return r.readInto(to.grow(n))
}

// Spilled returns the number of unread bytes outside of the ring.
func (r *NICReceiver) Spilled() int { return r.spillBeforeOld.len() + r.spillAfterOld.len() }
