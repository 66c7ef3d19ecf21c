package rnic

import "time"

// Moves of the service to another processor.
const (
	minRequestTime     = 4 * time.Microsecond  // minimum time that a peer takes from a response to its next request
	packetsBeforeMove  = 8                     // packets in a row from a peer on the same processor
	minMovePause       = time.Millisecond      // between moves
	maxMovePause       = 16 * time.Millisecond // between moves that did not help
	helpfulMovesPauses = 8                     // pauses without a move, after which the last one has helped
)

// A mover decides when the service moves to another processor: when it shares one with the peer
// that it serves. Each waits for the other then, although another processor may be idle, and the
// kernel keeps both there because each ran a moment ago.
//
// A packet that arrives while another thread runs for as long as a request takes comes from that
// thread. A service of another process, which only polls, runs for a shorter time.
type mover struct {
	yielded time.Duration // duration of the yield before the next poll, 0 if none
	packets int           // polls with packets in a row that the peer may have sent in such a time
	next    int64         // earliest time of the next move
	pause   int64         // between the last move and the next one
}

// recordYield records a yield that the next poll follows, 0 if none.
func (m *mover) recordYield(d time.Duration) { m.yielded = d }

// recordPacket records a poll with packets, and reports whether the service should move.
func (m *mover) recordPacket(now int64) (move bool) {
	beside := m.yielded >= minRequestTime
	m.yielded = 0
	if !beside {
		m.packets = 0
		return false
	}
	if m.packets++; m.packets < packetsBeforeMove || now < m.next {
		return false
	}
	m.packets = 0
	if now-m.next > helpfulMovesPauses*m.pause {
		m.pause = 0
	}
	m.pause = min(max(int64(minMovePause), 2*m.pause), int64(maxMovePause))
	m.next = now + m.pause
	return true
}
