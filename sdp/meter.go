package sdp

import (
	"time"

	"github.com/softrnic/softrnic/sdp/internal/protocol"
)

// BufferUse is the average use of a connection's buffers over a time, in bytes, of the levels in
// [Stats].
type BufferUse struct {
	Over time.Duration

	// Send is the larger of the use of the local send buffer (bytes not acknowledged) and the
	// known use of the peer's receive buffer (bytes sent and not read). With NIC only the
	// adapters know the latter.
	Send float64

	Receive float64 // arrived and unread
}

// A meter integrates buffer levels over time.
type meter struct {
	began, since  time.Time
	level         protocol.Levels // level since the time since
	send, receive float64         // integral up to the time since, in byte nanoseconds
}

// record sets the levels from now on.
func (m *meter) record(now time.Time, l protocol.Levels) {
	d := float64(now.Sub(m.since))
	m.send += d * float64(max(m.level.Send, m.level.PeerUsed))
	m.receive += d * float64(m.level.Receive)
	m.since, m.level = now, l
}

func (m *meter) average() BufferUse {
	elapsed := m.since.Sub(m.began)
	d := float64(max(elapsed, 1))
	return BufferUse{Over: elapsed, Send: m.send / d, Receive: m.receive / d}
}
