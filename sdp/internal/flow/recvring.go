package flow

// A recvRing is the receive buffer of the modes in which the peer writes to a ring. During a ring
// change it has two rings.
type recvRing struct {
	ring           // new data arrives here
	old     ring   // unread data that arrived before SwitchRing
	nextMem []byte // ring of ChangeRing, until SwitchRing

	spillBeforeOld, spillAfterOld spill // data moved out of ring, to be read before and after old
}

// Deliver implements RingReceiver.
func (r *recvRing) Deliver(at, n int) error {
	if n < 0 || n > r.free() {
		return ErrOverrun
	}
	if at != r.offsetOf(r.head) || at+n > len(r.mem) {
		return ErrMisplaced
	}
	r.head += uint64(n)
	return nil
}

// Read implements Receiver.
func (r *recvRing) Read(p []byte) int {
	n := r.spillBeforeOld.readInto(p)
	if r.old.mem != nil {
		n += r.old.readInto(p[n:])
		if r.old.len() == 0 {
			r.old = ring{}
			r.spillBeforeOld, r.spillAfterOld = r.spillAfterOld, spill{}
			n += r.spillBeforeOld.readInto(p[n:])
		}
	}
	return n + r.readInto(p[n:])
}

// Buffered implements Receiver.
func (r *recvRing) Buffered() int {
	return r.spillBeforeOld.len() + r.old.len() + r.spillAfterOld.len() + r.len()
}

// Free returns the number of free bytes of the ring.
func (r *recvRing) Free() int { return r.free() }

// bytesRead returns the number of bytes read since the connection began.
func (r *recvRing) bytesRead() uint64 { return r.head - uint64(r.Buffered()) }

// ChangeRing implements RingReceiver.
func (r *recvRing) ChangeRing(mem []byte) bool {
	if r.ChangingRing() || len(mem) < len(r.mem) {
		return false
	}
	r.nextMem = mem
	return true
}

// SwitchRing implements RingReceiver.
func (r *recvRing) SwitchRing() bool {
	if r.nextMem == nil {
		return false
	}
	if r.len() > 0 {
		r.old = r.ring
	}
	r.ring = ring{mem: r.nextMem, base: r.head, head: r.head, tail: r.head}
	r.nextMem = nil
	return true
}

// HalfFull implements RingReceiver.
func (r *recvRing) HalfFull() bool { return 2*r.len() > len(r.mem) }

// ChangingRing implements RingReceiver.
func (r *recvRing) ChangingRing() bool { return r.nextMem != nil || r.old.mem != nil }

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
