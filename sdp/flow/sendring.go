package flow

// sendRing is the send buffer of the designs that place messages in a ring at
// the peer: what is written, what of that is posted, what of that is done.
type sendRing struct {
	ring            // head is what has been written, tail what is done
	posted   uint64 // given to the adapter
	remote   int    // size of the peer's ring
	messages int    // posted and not done, by signaled ones
	queue    int    // bound on messages
	since    int    // messages since the last signaled one
	bytes    int    // and their bytes
	signals  []mark // signaled messages that are not done
}

// mark is a signaled message and how many messages its completion settles.
type mark struct {
	end      uint64
	messages int
}

func newSendRing(mem []byte, remote, queue int) sendRing {
	return sendRing{ring: ring{mem: mem}, remote: remote, queue: queue}
}

// Write implements Sender.
func (s *sendRing) Write(p []byte) int { return s.put(p) }

// Room implements Sender.
func (s *sendRing) Room() int { return s.room() }

// Unposted implements Sender.
func (s *sendRing) Unposted() int { return int(s.head - s.posted) }

// Unsent implements Sender.
func (s *sendRing) Unsent() int { return s.len() }

// inFlight is how many bytes are posted and not done.
func (s *sendRing) inFlight() int { return int(s.posted - s.tail) }

// next makes a message of at most limit bytes of what waits. Each quarter of the
// bytes and messages that may be posted is signaled, so that there is always a
// completion to come when they are used up.
func (s *sendRing) next(limit, most int) (Message, bool) {
	if s.messages >= s.queue {
		return Message{}, false
	}
	n := s.span(s.posted, min(s.Unposted(), limit))
	at := int(s.posted % uint64(s.remote))
	n = min(n, s.remote-at)
	if n <= 0 {
		return Message{}, false
	}
	m := Message{Pos: s.posted, Len: n, Local: s.at(s.posted), Remote: at}
	s.posted += uint64(n)
	s.messages++
	s.since++
	s.bytes += n
	if s.bytes >= most/4 || s.since >= max(1, s.queue/4) {
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
