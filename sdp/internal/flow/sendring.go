package flow

import "cmp"

// A sendRing is the send buffer of the modes that write to a ring at the peer. It tracks written,
// posted and completed bytes.
//
// The ring uses the first part of its memory until that is too short for a Write, so a connection
// with short messages reuses a few cached pages and touches no others. A grown ring continues
// after its former end, and wraps to its beginning when all bytes from before the growth are
// completed.
type sendRing struct {
	ring                               // in the first part of all; head is written, tail is completed
	all              []byte            // the whole buffer
	prevRing         ring              // holds the bytes before grownAt
	grownAt          uint64            // position at which the ring grew
	posted           uint64            // position up to which bytes are posted
	remote           int               // length of the peer's ring
	remoteBase       uint64            // position at offset 0 of the peer's ring
	messageEnd       uint64            // position at which a message must end
	maxInFlight      int               // maximum number of messages in flight
	signalBytes      int               // bytes after which a message is signaled
	outstanding      int               // messages posted and not completed
	unsignaled       int               // of these, posted after the last signaled one
	unsignaledBytes  int               // bytes in the unsignaled messages
	signaledMessages []signaledMessage // signaled messages that are not completed
	lastSignaled     uint64            // end of the last signaled message
}

// A signaledMessage is a signaled message with the number of messages that its completion covers.
type signaledMessage struct {
	end    uint64
	covers int
}

func newSendRing(mem []byte, first, remote, queue int) sendRing {
	return sendRing{ring: ring{mem: mem[:min(cmp.Or(first, len(mem)), len(mem))]}, all: mem, remote: remote, maxInFlight: max(1, queue)}
}

// growFor grows the ring if n bytes do not fit and growth helps. It reports whether the ring
// grew.
func (s *sendRing) growFor(n int) bool {
	if room := s.free(); n <= room || s.freeAfterGrowth() <= room {
		return false
	}
	s.prevRing, s.grownAt = s.ring, s.head
	s.base = s.head - uint64(len(s.mem))
	s.mem = s.all[:s.nextLength()]
	return true
}

// nextLength returns the length of the ring after growth.
func (s *sendRing) nextLength() int { return min(GrownLength(len(s.mem)), len(s.all)) }

// freeAfterGrowth returns the number of free bytes after growth.
func (s *sendRing) freeAfterGrowth() int {
	switch {
	case s.tail < s.grownAt: // the last growth is incomplete
		return 0
	case s.len() == 0:
		return s.nextLength()
	}
	return s.nextLength() - len(s.mem)
}

// free returns the number of bytes that may be written. After growth only the new part is free
// until all bytes before grownAt are completed.
func (s *sendRing) free() int {
	if s.tail < s.grownAt {
		return len(s.mem) - len(s.prevRing.mem) - int(s.head-s.grownAt)
	}
	return s.ring.free()
}

// writeFrom copies as much of p as fits and returns the number of bytes copied.
func (s *sendRing) writeFrom(p []byte) int { return s.ring.writeFrom(p[:min(len(p), s.free())]) }

// contiguousAt returns the offset of pos and how many of the n bytes from there are contiguous.
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

// SwitchRing makes the next message the first in another ring of the peer, with remote bytes.
func (s *sendRing) SwitchRing(remote int) { s.remote, s.remoteBase = remote, s.posted }

// inFlight returns the number of bytes posted and not completed.
func (s *sendRing) inFlight() int { return int(s.posted - s.tail) }

// nextMessage returns a message of at most limit bytes. A message is signaled every quarter of
// maxInFlight messages, every signalBytes bytes, and at the end of the bytes before a growth, so
// a completion is always outstanding when the limits block the sender.
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
	if pos >= s.posted { // unsignaled messages after the last signaled one
		s.outstanding -= s.unsignaled
		s.tail, s.lastSignaled = s.posted, s.posted
		s.unsignaled, s.unsignaledBytes = 0, 0
	}
}
