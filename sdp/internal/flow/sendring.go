package flow

import "cmp"

// sendRing is the send buffer of the designs that place messages in a ring at
// the peer: what is written, what of that is posted, what of that is done.
//
// It goes round in the first part of its memory until that is too small for what is
// written. So a connection of short messages uses a few pages again and again, which are
// in the caches, and has no others. A ring that becomes longer goes on behind its end, and
// comes to its beginning when all that was there then is done.
type sendRing struct {
	ring                               // in the first part of all; head is what has been written, tail what is done
	all              []byte            // all the memory there is
	prevRing         ring              // where what was written before turn lies
	grownAt          uint64            // position at which the ring became longer
	posted           uint64            // given to the adapter
	remote           int               // size of the peer's ring
	remoteBase       uint64            // position that lies at offset 0 there
	messageEnd       uint64            // position at which a message must end
	maxInFlight      int               // bound on messages
	signalBytes      int               // bytes after which a message is signaled
	outstanding      int               // posted and not done
	unsignaled       int               // of these, after the last signaled one
	unsignaledBytes  int               // and in them
	signaledMessages []signaledMessage // signaled messages that are not done
	lastSignaled     uint64            // the end of the last one
}

// signaledMessage is a signaled message and how many messages its completion settles.
type signaledMessage struct {
	end    uint64
	covers int
}

func newSendRing(mem []byte, first, remote, queue int) sendRing {
	return sendRing{ring: ring{mem: mem[:min(cmp.Or(first, len(mem)), len(mem))]}, all: mem, remote: remote, maxInFlight: max(1, queue)}
}

// growFor makes the ring longer if n bytes are too much for it, and reports whether it
// has become so.
func (s *sendRing) growFor(n int) bool {
	if room := s.free(); n <= room || s.freeAfterGrowth() <= room {
		return false
	}
	s.prevRing, s.grownAt = s.ring, s.head
	s.base = s.head - uint64(len(s.mem))
	s.mem = s.all[:s.nextLength()]
	return true
}

// nextLength is the next length of the ring.
func (s *sendRing) nextLength() int { return min(GrownLength(len(s.mem)), len(s.all)) }

// freeAfterGrowth is the room that there would be in a longer ring.
func (s *sendRing) freeAfterGrowth() int {
	switch {
	case s.tail < s.grownAt: // it has become longer, and still uses what it was
		return 0
	case s.len() == 0:
		return s.nextLength()
	}
	return s.nextLength() - len(s.mem)
}

// free is how much may be written: behind the end of the ring as it was, until all is
// done that lies there.
func (s *sendRing) free() int {
	if s.tail < s.grownAt {
		return len(s.mem) - len(s.prevRing.mem) - int(s.head-s.grownAt)
	}
	return s.ring.free()
}

// writeFrom copies in what there is room for.
func (s *sendRing) writeFrom(p []byte) int { return s.ring.writeFrom(p[:min(len(p), s.free())]) }

// contiguousAt is where a position lies, and how many of the n bytes from there do in one piece.
func (s *sendRing) contiguousAt(pos uint64, n int) (at, length int) {
	r := &s.ring
	if pos < s.grownAt {
		r, n = &s.prevRing, min(n, int(s.grownAt-pos))
	}
	return r.offsetOf(pos), r.contiguous(pos, n)
}

// EndMessage implements Sender.
func (s *sendRing) EndMessage() uint64 {
	s.messageEnd = s.head
	return s.messageEnd
}

// Free implements Sender.
func (s *sendRing) Free() int { return max(s.free(), s.freeAfterGrowth()) }

// Unposted implements Sender.
func (s *sendRing) Unposted() int { return int(s.head - s.posted) }

// Unsent implements Sender.
func (s *sendRing) Unsent() int { return s.len() }

// SwitchRing makes the next message the first in another ring of the peer.
func (s *sendRing) SwitchRing(remote int) { s.remote, s.remoteBase = remote, s.posted }

// inFlight is how many bytes are posted and not done.
func (s *sendRing) inFlight() int { return int(s.posted - s.tail) }

// nextMessage makes a message of at most limit bytes of what waits. Signals are so
// frequent that there is always a completion to come when what may be posted
// is used up: a quarter of the messages is, every bytes are, and what makes room again
// after the ring has become longer.
func (s *sendRing) nextMessage(limit int) (Message, bool) {
	if s.outstanding >= s.maxInFlight {
		return Message{}, false
	}
	local, n := s.contiguousAt(s.posted, min(s.Unposted(), limit))
	at := ringOffset(s.posted, s.remoteBase, s.remote)
	n = min(n, s.remote-at)
	if s.messageEnd > s.posted {
		n = min(n, int(s.messageEnd-s.posted))
	}
	if n <= 0 {
		return Message{}, false
	}
	m := Message{Pos: s.posted, Len: n, Local: local, Remote: at}
	s.posted += uint64(n)
	s.outstanding++
	s.unsignaled++
	s.unsignaledBytes += n
	if s.unsignaledBytes >= s.signalBytes || s.unsignaled >= max(1, s.maxInFlight/4) || s.posted >= s.grownAt && s.lastSignaled < s.grownAt {
		m.Signal = true
		s.lastSignaled = s.posted
		s.signaledMessages = append(s.signaledMessages, signaledMessage{s.posted, s.unsignaled})
		s.unsignaled, s.unsignaledBytes = 0, 0
	}
	return m, true
}

// CompleteUpTo implements Sender.
func (s *sendRing) CompleteUpTo(pos uint64) {
	n := 0
	for n < len(s.signaledMessages) && s.signaledMessages[n].end <= pos {
		s.outstanding -= s.signaledMessages[n].covers
		s.tail = s.signaledMessages[n].end
		n++
	}
	s.signaledMessages = s.signaledMessages[:copy(s.signaledMessages, s.signaledMessages[n:])]
	if pos >= s.posted { // those behind the last signal, too
		s.outstanding -= s.unsignaled
		s.tail, s.lastSignaled = s.posted, s.posted
		s.unsignaled, s.unsignaledBytes = 0, 0
	}
}
