package flow

// sendRing is the send buffer of the designs that place messages in a ring at
// the peer: what is written, what of that is posted, what of that is done.
type sendRing struct {
	ring            // head is what has been written, tail what is done
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
}

// mark is a signaled message and how many messages its completion settles.
type mark struct {
	end      uint64
	messages int
}

func newSendRing(mem []byte, remote, queue, every int) sendRing {
	return sendRing{ring: ring{mem: mem}, remote: remote, queue: max(1, queue), every: every}
}

// Write implements Sender.
func (s *sendRing) Write(p []byte) int { return s.put(p) }

// Cut implements Sender.
func (s *sendRing) Cut() uint64 {
	s.cut = s.head
	return s.cut
}

// Room implements Sender.
func (s *sendRing) Room() int { return s.room() }

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
// is used up: a quarter of the messages is, and every bytes are.
func (s *sendRing) next(limit int) (Message, bool) {
	if s.messages >= s.queue {
		return Message{}, false
	}
	n := s.span(s.posted, min(s.Unposted(), limit))
	at := offset(s.posted, s.begun, s.remote)
	n = min(n, s.remote-at)
	if s.cut > s.posted {
		n = min(n, int(s.cut-s.posted))
	}
	if n <= 0 {
		return Message{}, false
	}
	m := Message{Pos: s.posted, Len: n, Local: s.at(s.posted), Remote: at}
	s.posted += uint64(n)
	s.messages++
	s.since++
	s.bytes += n
	if s.bytes >= s.every || s.since >= max(1, s.queue/4) {
		m.Signal = true
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
}
