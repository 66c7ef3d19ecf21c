package acp

// A null handle is a nil pointer, or a pointer to a zero value, of a Process, Channel, Chan, Region, Request
// or Group. Calls on it that return an error return ErrNull, those that return an address return Null, those
// that return a Handle return None, and the others do nothing.

// isNull reports whether p is a null handle.
func (p *Process) isNull() bool { return p == nil || p.manager == nil }

// isNull reports whether ch is a null handle.
func (ch *Channel) isNull() bool { return ch == nil || ch.p == nil }

// isNull reports whether r is a null handle.
func (r *Region) isNull() bool { return r == nil || r.p == nil }

// isNull reports whether g is a null handle.
func (g *Group) isNull() bool { return g == nil || g.p.isNull() }

// bytesChannel returns the underlying channel of c, or nil.
func (c *Chan[T]) bytesChannel() *Channel {
	if c == nil {
		return nil
	}
	return c.ch
}

// hasRank reports whether rank is a rank of the job.
func (p *Process) hasRank(rank int) bool { return !p.isNull() && rank >= 0 && rank < p.size }
