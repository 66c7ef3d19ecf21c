package flow

// recvRing is the receive buffer of the designs that place messages in it from
// afar. While one ring takes the place of another there are two.
type recvRing struct {
	ring        // where what arrives is
	old  ring   // where what arrived before Switch is, until it is read
	next []byte // of Change, until Switch

	early, late spill // what has been moved out of ring: to be read before old, and after
}

// Arrived implements RingReceiver.
func (r *recvRing) Arrived(at, n int) error {
	if n < 0 || n > r.room() {
		return ErrOverrun
	}
	if at != r.at(r.head) || at+n > len(r.mem) {
		return ErrMisplaced
	}
	r.head += uint64(n)
	return nil
}

// Read implements Receiver.
func (r *recvRing) Read(p []byte) int {
	n := r.early.take(p)
	if r.old.mem != nil {
		n += r.old.take(p[n:])
		if r.old.len() == 0 {
			r.old = ring{}
			r.early, r.late = r.late, spill{}
			n += r.early.take(p[n:])
		}
	}
	return n + r.take(p[n:])
}

// Buffered implements Receiver.
func (r *recvRing) Buffered() int { return r.early.len() + r.old.len() + r.late.len() + r.len() }

// Free is how much of the ring is empty.
func (r *recvRing) Free() int { return r.room() }

// emptied is how many bytes have been read since the beginning.
func (r *recvRing) emptied() uint64 { return r.head - uint64(r.Buffered()) }

// Change implements RingReceiver.
func (r *recvRing) Change(mem []byte) bool {
	if r.Changing() || len(mem) < len(r.mem) {
		return false
	}
	r.next = mem
	return true
}

// Switch implements RingReceiver.
func (r *recvRing) Switch() bool {
	if r.next == nil {
		return false
	}
	if r.len() > 0 {
		r.old = r.ring
	}
	r.ring = ring{mem: r.next, base: r.head, head: r.head, tail: r.head}
	r.next = nil
	return true
}

// Crowded implements RingReceiver.
func (r *recvRing) Crowded() bool { return 2*r.len() > len(r.mem) }

// Changing implements RingReceiver.
func (r *recvRing) Changing() bool { return r.next != nil || r.old.mem != nil }
