package flow

// recvRing is the receive buffer of the designs that place messages in it from
// afar. While one ring takes the place of another there are two.
type recvRing struct {
	ring           // where what arrives is
	old     ring   // where what arrived before Switch is, until it is read
	nextMem []byte // of Change, until Switch

	spillBeforeOld, spillAfterOld spill // what has been moved out of ring: to be read before old, and after
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

// Free is how much of the ring is empty.
func (r *recvRing) Free() int { return r.free() }

// bytesRead is how many bytes have been read since the beginning.
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
