package flow

// spill is what has been moved out of a ring without having been read. Its
// memory grows as it is needed, and is let go when all of it has been read.
type spill struct {
	mem []byte
	off int // of mem
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

// grow makes room for n more bytes, and returns it. What has been read goes.
func (s *spill) grow(n int) []byte {
	s.mem = s.mem[:copy(s.mem, s.mem[s.off:])]
	s.off = 0
	s.mem = append(s.mem, make([]byte, n)...)
	return s.mem[len(s.mem)-n:]
}

// Spill moves what is in the ring out of it, but no more than fits when so much
// may lie there in all. It returns how much that was: the ring has room for it
// again. Read goes on in order.
func (r *NICReceiver) Spill(most int) int {
	n := min(most-r.Spilled(), r.len())
	if n <= 0 {
		return 0
	}
	to := &r.spillBeforeOld
	if r.old.mem != nil { // which gives no room, and stays where it is
		to = &r.spillAfterOld
	}
	return r.readInto(to.grow(n))
}

// Spilled is how much of what waits to be read Spill has moved.
func (r *NICReceiver) Spilled() int { return r.spillBeforeOld.len() + r.spillAfterOld.len() }
