package acp

// Null handles: a nil pointer, or one to a zero value, of a Process, Channel, Chan, Region,
// Request or Group stands for nothing. Calls that return an error return ErrNull, those that
// return an address Null, those that return a Handle None, and the others do nothing.

// isNull reports whether p stands for no rank.
func (p *Process) isNull() bool { return p == nil || p.manager == nil }

// isNull reports whether ch is no end of a channel.
func (ch *Channel) isNull() bool { return ch == nil || ch.p == nil }

// isNull reports whether r is no memory.
func (r *Region) isNull() bool { return r == nil || r.p == nil }

// isNull reports whether g is a group of no rank.
func (g *Group) isNull() bool { return g == nil || g.p.isNull() }

// bytesChannel returns the channel of bytes of c, or nil.
func (c *Chan[T]) bytesChannel() *Channel {
	if c == nil {
		return nil
	}
	return c.ch
}

// hasRank reports whether a rank is one of the job.
func (p *Process) hasRank(rank int) bool { return !p.isNull() && rank >= 0 && rank < p.size }
