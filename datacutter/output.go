package datacutter

import "fmt"

// Output is the producer's end of a stream. It belongs to the goroutine that
// runs the filter's Process, or to one at a time.
type Output struct {
	stream   *Stream
	number   int        // of the stream
	to       []Instance // the copies of the consumer
	links    []*link    // their connections
	frame    []byte     // room for a header and a unit
	nextCopy int        // the copy that is next in turn
	err      error      // sticky
	replies  *replies   // nil if nobody has to listen before bye
	acked    bool       // consumers acknowledge units; then there are replies
}

// UnitSize is the most that a unit of the stream can have, in bytes.
func (out *Output) UnitSize() int { return out.stream.UnitSize }

// Send sends a unit to the copy of the consumer that the stream's policy
// chooses, and returns when the connection has taken it; that may be long
// before it arrives. The unit is the caller's again then. It allocates
// nothing. A stream with policy ByKey wants SendKey.
func (out *Output) Send(unit []byte) error {
	if out.err == nil && out.stream.Policy == ByKey {
		out.err = fmt.Errorf("%w: stream %s chooses by key: use SendKey", ErrJob, out.stream.Name)
	}
	return out.SendKey(0, unit)
}

// SendKey is Send with a key, by which the stream chooses the copy if its
// policy is ByKey: units with the same key go to the same copy.
func (out *Output) SendKey(key uint64, unit []byte) error {
	if out.err != nil {
		return out.err
	}
	if len(unit) > out.stream.UnitSize {
		out.err = fmt.Errorf("stream %s: %w: %d bytes, at most %d", out.stream.Name, ErrTooLong, len(unit), out.stream.UnitSize)
		return out.err
	}
	to, err := out.chooseCopy(key)
	l := out.links[to]
	if err != nil {
		return out.failStream(to, err)
	}
	putHeader(out.frame, kindUnit, len(unit))
	n := copy(out.frame[frameHeader:], unit)
	if err := l.writeFrames(out.frame[:frameHeader+n]); err != nil {
		return out.failStream(to, out.peerReason(to, err))
	}
	l.work.addUnit(unit)
	l.total.addUnit(unit)
	return nil
}

// slotFor is the name of the connection from an instance to a copy of the consumer.
func (out *Output) slotFor(from Instance, to int) slot {
	return slot{stream: out.number, group: from.Group, from: from.Copy, to: to}
}

// chooseCopy returns the number of the copy for a unit, by the stream's policy.
func (out *Output) chooseCopy(key uint64) (int, error) {
	switch {
	case out.stream.Policy == ByKey:
		return int(key % uint64(len(out.links))), nil
	case out.acked:
		return out.replies.chooseCopy()
	}
	to := out.nextCopy
	out.nextCopy = (to + 1) % len(out.links)
	return to, nil
}

func (out *Output) failStream(to int, err error) error {
	out.err = &StreamError{Stream: out.stream.Name, To: true, Peer: out.to[to], Err: err}
	return out.err
}

// peerReason looks for the peer's reason when a write failed with err; see link.cause.
func (out *Output) peerReason(to int, err error) error {
	if out.replies != nil {
		return out.replies.peerReason(to, out.links[to], err)
	}
	return out.links[to].peerReason(err)
}

// endWork ends a work.
func (out *Output) endWork(number int) error {
	if out.err != nil {
		return out.err // the filter saw it and went on
	}
	for to, l := range out.links {
		if err := l.writeFrames(appendEnd(out.frame[:0], number, l.work)); err != nil {
			return out.failStream(to, out.peerReason(to, err))
		}
		l.work = Counts{}
	}
	return nil
}

// sendBye says that no work follows.
func (out *Output) sendBye() error {
	if out.replies != nil {
		out.replies.allowBye()
	}
	for to, l := range out.links {
		if err := l.writeFrames(appendFrame(nil, kindBye, nil)); err != nil {
			return out.failStream(to, out.peerReason(to, err))
		}
	}
	return nil
}

// waitBye waits for the consumer's answer to bye, and hangs up; see Input.replyBye.
func (out *Output) waitBye() error {
	for to, l := range out.links {
		var err error
		if out.replies != nil {
			err = out.replies.waitBye(to)
		} else {
			err = l.expectFrame(kindBye)
		}
		if err != nil {
			return out.failStream(to, err)
		}
		l.conn.Close()
	}
	return nil
}

// startReplies prepares for the first work. Consumers that acknowledge units are
// listened to.
func (out *Output) startReplies(r *run, acked, listen bool) {
	out.frame = make([]byte, frameHeader+max(out.stream.UnitSize, endLen))
	out.acked = acked
	if listen {
		out.replies = newReplies(r, out.stream.Window, out.links)
	}
}
