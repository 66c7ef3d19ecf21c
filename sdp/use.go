package sdp

import (
	"time"

	"github.com/softrnic/softrnic/sdp/internal/protocol"
)

// Use is how much of a connection's buffers was used over a time: exact means, in bytes,
// of the levels of [Stats].
type Use struct {
	Over time.Duration

	// Send is of our buffer and of what we know of the peer's, whichever has more in it
	// that may not be used: what is written and not with the peer's adapter, or sent and
	// not known to be read. With NIC only the adapters know the latter.
	Send float64

	Receive float64 // arrived, and not read
}

// MeasureUse begins to measure how much of the buffers is used, and returns what ends
// that and tells. One such measurement at a time can be under way: a second one ends the
// first, which then tells of nothing after that. Each call looks at the clock meanwhile.
func (c *Conn) MeasureUse() (stop func() Use) {
	if !c.isOpen() {
		return func() Use { return Use{} }
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &meter{began: time.Now()}
	m.since = m.began
	m.level = c.core.Levels()
	c.meter = m
	return func() Use {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.meter == m {
			c.recordUse()
			c.meter = nil
		}
		return m.average()
	}
}

// recordUse notes what the buffers hold now, if somebody wants to know.
func (c *Conn) recordUse() {
	if c.meter != nil {
		c.meter.record(time.Now(), c.core.Levels())
	}
}

// meter adds up what the buffers hold.
type meter struct {
	began, since  time.Time
	level         protocol.Levels // since then
	send, receive float64         // bytes times nanoseconds, until then
}

// record says what the buffers hold from now on.
func (m *meter) record(now time.Time, l protocol.Levels) {
	d := float64(now.Sub(m.since))
	m.send += d * float64(max(m.level.Send, m.level.PeerUsed))
	m.receive += d * float64(m.level.Receive)
	m.since, m.level = now, l
}

func (m *meter) average() Use {
	over := m.since.Sub(m.began)
	d := float64(max(over, 1))
	return Use{Over: over, Send: m.send / d, Receive: m.receive / d}
}
