package flow

// recvRing is the receive buffer of the designs that place messages in it from
// afar.
type recvRing struct {
	ring
}

// Arrived implements Receiver: at is an offset in the ring.
func (r *recvRing) Arrived(at, n int) error {
	if n > r.room() {
		return ErrOverrun
	}
	if at != r.at(r.head) || at+n > len(r.mem) {
		return ErrMisplaced
	}
	r.head += uint64(n)
	return nil
}

// Read implements Receiver.
func (r *recvRing) Read(p []byte) int { return r.take(p) }

// Buffered implements Receiver.
func (r *recvRing) Buffered() int { return r.len() }

// Free is how much of the ring is empty.
func (r *recvRing) Free() int { return r.room() }
