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
