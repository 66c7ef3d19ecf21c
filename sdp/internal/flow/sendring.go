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
	ring            // in the first part of all; head is what has been written, tail what is done
	all      []byte // all the memory there is
	before   ring   // where what was written before turn lies
	turn     uint64 // position at which the ring became longer
	posted   uint64 // given to the adapter
	remote   int    // size of the peer's ring
	begun    uint64 // position that lies at offset 0 there
	cut      uint64 // position at which a message must end
	queue    int    // bound on messages
	every    int    // bytes after which a message is signaled
	messages int    // posted and not done
	since    int    // of these, after the last signaled one
	bytes    int    // and in them
	signals  []mark // signaled messages that are not done
	signaled uint64 // the end of the last one
}

// mark is a signaled message and how many messages its completion settles.
type mark struct {
	end      uint64
	messages int
}

func newSendRing(mem []byte, first, remote, queue int) sendRing {
	return sendRing{ring: ring{mem: mem[:min(cmp.Or(first, len(mem)), len(mem))]}, all: mem, remote: remote, queue: max(1, queue)}
}

// stretch makes the ring longer if n bytes are too much for it, and reports whether it
// has become so.
func (s *sendRing) stretch(n int) bool {
	if room := s.room(); n <= room || s.more() <= room {
		return false
	}
	s.before, s.turn = s.ring, s.head
	s.base = s.head - uint64(len(s.mem))
	s.mem = s.all[:s.longer()]
	return true
}

// longer is the next length of the ring.
func (s *sendRing) longer() int { return min(Longer(len(s.mem)), len(s.all)) }

// more is the room that there would be in a longer ring.
func (s *sendRing) more() int {
	switch {
	case s.tail < s.turn: // it has become longer, and still uses what it was
		return 0
	case s.len() == 0:
		return s.longer()
	}
	return s.longer() - len(s.mem)
}

// room is how much may be written: behind the end of the ring as it was, until all is
// done that lies there.
func (s *sendRing) room() int {
	if s.tail < s.turn {
		return len(s.mem) - len(s.before.mem) - int(s.head-s.turn)
	}
	return s.ring.room()
}

// put copies in what there is room for.
func (s *sendRing) put(p []byte) int { return s.ring.put(p[:min(len(p), s.room())]) }

// piece is where a position lies, and how many of the n bytes from there do in one piece.
func (s *sendRing) piece(pos uint64, n int) (at, length int) {
	r := &s.ring
	if pos < s.turn {
		r, n = &s.before, min(n, int(s.turn-pos))
	}
	return r.at(pos), r.span(pos, n)
}

// Cut implements Sender.
func (s *sendRing) Cut() uint64 {
	s.cut = s.head
	return s.cut
}

// Room implements Sender.
func (s *sendRing) Room() int { return max(s.room(), s.more()) }

// Unposted implements Sender.
func (s *sendRing) Unposted() int { return int(s.head - s.posted) }

// Unsent implements Sender.
func (s *sendRing) Unsent() int { return s.len() }

// Switch makes the next message the first in another ring of the peer.
func (s *sendRing) Switch(remote int) { s.remote, s.begun = remote, s.posted }

// inFlight is how many bytes are posted and not done.
func (s *sendRing) inFlight() int { return int(s.posted - s.tail) }

// next makes a message of at most limit bytes of what waits. Signals are so
// frequent that there is always a completion to come when what may be posted
// is used up: a quarter of the messages is, every bytes are, and what makes room again
// after the ring has become longer.
func (s *sendRing) next(limit int) (Message, bool) {
	if s.messages >= s.queue {
		return Message{}, false
	}
	local, n := s.piece(s.posted, min(s.Unposted(), limit))
	at := offset(s.posted, s.begun, s.remote)
	n = min(n, s.remote-at)
	if s.cut > s.posted {
		n = min(n, int(s.cut-s.posted))
	}
	if n <= 0 {
		return Message{}, false
	}
	m := Message{Pos: s.posted, Len: n, Local: local, Remote: at}
	s.posted += uint64(n)
	s.messages++
	s.since++
	s.bytes += n
	if s.bytes >= s.every || s.since >= max(1, s.queue/4) || s.posted >= s.turn && s.signaled < s.turn {
		m.Signal = true
		s.signaled = s.posted
		s.signals = append(s.signals, mark{s.posted, s.since})
		s.since, s.bytes = 0, 0
	}
	return m, true
}

// Done implements Sender.
func (s *sendRing) Done(pos uint64) {
	n := 0
	for n < len(s.signals) && s.signals[n].end <= pos {
		s.messages -= s.signals[n].messages
		s.tail = s.signals[n].end
		n++
	}
	s.signals = s.signals[:copy(s.signals, s.signals[n:])]
	if pos >= s.posted { // those behind the last signal, too
		s.messages -= s.since
		s.tail, s.signaled = s.posted, s.posted
		s.since, s.bytes = 0, 0
	}
}
