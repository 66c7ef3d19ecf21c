package datacutter

import "fmt"

// Output is the producer's end of a stream. It must not be used concurrently. Usually the goroutine that runs
// the filter's Process uses it.
type Output struct {
	stream   *Stream
	number   int        // of the stream
	to       []Instance // the copies of the consumer
	links    []*link    // their connections
	frame    []byte     // buffer for a header and a unit
	nextCopy int        // the next copy in round-robin order
	err      error      // sticky
	replies  *replies   // reads the consumers' frames; nil if only bye is expected
	acked    bool       // consumers acknowledge units; replies is not nil then
}

// UnitSize returns the maximum length of a unit of the stream in bytes.
func (out *Output) UnitSize() int { return out.stream.UnitSize }

// Send sends a unit to the copy of the consumer that the stream's policy selects. It returns when the
// connection has buffered the unit, and the caller may reuse unit. Send does not allocate. Streams with
// policy ByKey require SendKey.
func (out *Output) Send(unit []byte) error {
	if out.err == nil && out.stream.Policy == ByKey {
		out.err = fmt.Errorf("%w: stream %s chooses by key: use SendKey", ErrJob, out.stream.Name)
	}
	return out.SendKey(0, unit)
}

// SendKey is Send with a key. If the stream's policy is ByKey, units with the same key go to the same copy.
func (out *Output) SendKey(key uint64, unit []byte) error {
	if out.err != nil {
		return out.err
	}
	if len(unit) > out.stream.UnitSize {
		out.err = fmt.Errorf("%w: stream %s: %d bytes, at most %d", ErrTooLong, out.stream.Name, len(unit), out.stream.UnitSize)
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

// slotFor returns the identity of the connection from an instance to a copy of the consumer.
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

// failStream records and returns the sticky error of the output.
func (out *Output) failStream(to int, err error) error {
	out.err = &StreamError{Stream: out.stream.Name, To: true, Peer: out.to[to], Err: err}
	return out.err
}

// peerReason returns the peer's reason after a write has failed with err; see link.peerReason.
func (out *Output) peerReason(to int, err error) error {
	if out.replies != nil {
		return out.replies.peerReason(to, out.links[to], err)
	}
	return out.links[to].peerReason(err)
}

func (out *Output) endWork(number int) error {
	if out.err != nil {
		return out.err // the filter has ignored this error
	}
	for to, l := range out.links {
		if err := l.writeFrames(appendEnd(out.frame[:0], number, l.work)); err != nil {
			return out.failStream(to, out.peerReason(to, err))
		}
		l.work = Counts{}
	}
	return nil
}

// sendBye announces that no work follows.
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

// waitBye waits for the consumers' replies to bye and closes the connections; see Input.replyBye.
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

// startReplies prepares for the first work. If listen is set, readers receive the consumers'
// acknowledgements.
func (out *Output) startReplies(r *run, acked, listen bool) {
	out.frame = make([]byte, frameHeader+max(out.stream.UnitSize, endLen))
	out.acked = acked
	if listen {
		out.replies = newReplies(r, out.stream.Window, out.links)
	}
}
