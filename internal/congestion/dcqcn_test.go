package congestion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
)

// A sender sends packets at the rate of a rule, or at the given one.
type sender struct {
	dcqcn
	now reliability.Time
}

func newSender() *sender { return &sender{dcqcn: dcqcn{packet: 1000}, now: 1} }

// send sends for the given time at the rate in force, at most max bytes a second.
func (s *sender) send(d reliability.Time, max float64) {
	for end := s.now + d; s.now < end; {
		rate := max
		if _, limit := s.limits(s.now); limit > 0 && limit < rate {
			rate = limit
		}
		s.onSent(s.now, 1000)
		s.now += reliability.Time(1000 / rate * 1e9)
	}
}

// TestNotificationsReduce checks that the first notification takes the measured rate, that a second
// one counts after a round trip only, and that many do not stop the flow.
func TestNotificationsReduce(t *testing.T) {
	s := newSender()
	s.onAck(s.now, Ack{Bytes: 1, RTT: 100_000})
	require.False(t, s.onMark(s.now), "nothing was sent")
	s.send(10*reliability.Millisecond, 100e6)
	_, rate := s.limits(s.now)
	require.Zero(t, rate, "no limit")
	require.True(t, s.onMark(s.now))
	_, first := s.limits(s.now)
	require.InDelta(t, 75e6, first, 8e6)
	require.False(t, s.onMark(s.now+50_000), "within a round trip")
	for range 10_000 {
		s.now += 100_000
		s.onSent(s.now, 1000)
		s.onMark(s.now)
	}
	_, rate = s.limits(s.now)
	require.GreaterOrEqual(t, rate, float64(minRate))
	s.send(200*reliability.Millisecond, 100e6)
	_, rate = s.limits(s.now)
	require.Greater(t, rate, 10e6, "the rate recovers")
}

// TestRecovery checks that the rate returns to that before the notification in some periods, exceeds
// it slowly, and that the limit is lifted in the end.
func TestRecovery(t *testing.T) {
	s := newSender()
	s.send(10*reliability.Millisecond, 100e6)
	s.onMark(s.now)
	s.send(4*reliability.Millisecond, 1e12)
	_, rate := s.limits(s.now)
	require.InDelta(t, 100e6, rate, 12e6)
	before := rate
	s.send(10*reliability.Millisecond, 1e12)
	_, rate = s.limits(s.now)
	require.InDelta(t, before+additiveSlope/100, rate, 4e6)
	s.now += 400 * reliability.Millisecond
	_, rate = s.limits(s.now)
	require.Zero(t, rate)
}

// TestUnusedRate checks that a flow that used a part of its limit is reduced from that part.
func TestUnusedRate(t *testing.T) {
	s := newSender()
	s.send(10*reliability.Millisecond, 100e6)
	s.onMark(s.now)
	s.send(100*reliability.Millisecond, 1e6)
	s.onMark(s.now)
	_, rate := s.limits(s.now)
	require.Less(t, rate, 2e6)
}
