package congestion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
)

const testPacket = 4352

// roundTrip acknowledges a window that took rtt nanoseconds.
func roundTrip(c Controller, now *reliability.Time, rtt int64) {
	*now += reliability.Time(rtt)
	c.OnAck(*now, Ack{Bytes: max(c.Window(), testPacket), InFlight: max(c.Window(), testPacket), RTT: rtt})
}

// TestSlowStartEnds checks that the window doubles until the round trip exceeds the target, and that
// the flow then lets the queue drain before it goes on with less.
func TestSlowStartEnds(t *testing.T) {
	c, now := New(Delay, Config{Packet: testPacket, MaxWindow: 8 << 20}), reliability.Time(1)
	for range 6 {
		before := c.Window()
		roundTrip(c, &now, 100_000)
		require.Equal(t, 2*before, c.Window())
	}
	top := c.Window()
	roundTrip(c, &now, 2_000_000) // perhaps the process was late
	require.Equal(t, 2*top, c.Window())
	top = c.Window()
	roundTrip(c, &now, 2_000_000)
	require.Equal(t, testPacket/2, c.Window(), "draining")
	for range drainSamples {
		roundTrip(c, &now, 100_000)
	}
	require.Greater(t, c.Window(), testPacket)
	require.LessOrEqual(t, c.Window(), top/2)
}

// TestTargetHolds checks that the window of a flow alone on a link of 1 Gbit/s settles near the
// target, so that the link is used and the queue is short.
func TestTargetHolds(t *testing.T) {
	const rate, base = 125e6, 200_000
	c, now := New(Delay, Config{Packet: testPacket, MaxWindow: 8 << 20}), reliability.Time(1)
	for range 5000 {
		roundTrip(c, &now, max(base, int64(float64(c.Window())/rate*1e9)))
	}
	require.Greater(t, c.Window(), int(rate*base/1e9))
	require.Less(t, c.Window(), 150_000)
}

// TestNoSampleStopsAFlow checks that the longest round trips leave a window.
func TestNoSampleStopsAFlow(t *testing.T) {
	c, now := New(Delay, Config{Packet: testPacket, MaxWindow: 1 << 20}), reliability.Time(1)
	roundTrip(c, &now, 100_000)
	for range 100 {
		roundTrip(c, &now, 10_000_000_000)
	}
	require.GreaterOrEqual(t, c.Window(), int(testPacket*minWindow))
	c.OnTimeout(now)
	require.GreaterOrEqual(t, c.Window(), int(testPacket*minWindow))
}

// TestLossWithoutQueue checks that some loss does not shrink the window while round trips show no
// queue, and that it does beside a queue.
func TestLossWithoutQueue(t *testing.T) {
	c, now := New(Delay, Config{Packet: testPacket, MaxWindow: 1 << 20}), reliability.Time(1)
	for range 10 {
		roundTrip(c, &now, 100_000)
	}
	before := c.Window()
	for range 5 {
		now += 200_000
		require.False(t, c.OnLoss(now))
	}
	require.Equal(t, before, c.Window())
	for range filterSamples {
		roundTrip(c, &now, 400_000)
	}
	before = c.Window()
	require.True(t, c.OnLoss(now+1e6))
	require.InDelta(t, 0.7*float64(before), c.Window(), 2)
}

// TestCompetes checks that a flow whose round trips stay long although it gives way takes part in
// filling the buffer, shrinks on loss then, and stops when the queue is short.
func TestCompetes(t *testing.T) {
	d := newDelayRule(Config{Packet: testPacket, MaxWindow: 8 << 20})
	now := reliability.Time(1)
	ack := func(rtt int64) {
		now += reliability.Time(rtt)
		bytes := max(int(d.window), testPacket)
		d.onAck(now, Ack{Bytes: bytes, InFlight: bytes, RTT: rtt})
	}
	for range 6 {
		ack(100_000)
	}
	for i := 0; !d.buffer.competing; i++ {
		require.Less(t, i, fullScore+3*filterSamples)
		ack(8_000_000)
	}
	before := d.window
	ack(8_000_000)
	require.InDelta(t, 2*before, d.window, 1, "until the first loss")
	now += 100_000_000
	require.True(t, d.onLoss(now))
	require.InDelta(t, 2*before*fillDecrease, d.window, 1)
	after := d.window
	for range 10 {
		ack(8_000_000)
	}
	require.Greater(t, d.window, after)
	for range emptyRounds / 2 {
		ack(110_000)
	}
	require.True(t, d.buffer.competing)
	for range emptyRounds {
		ack(110_000)
	}
	require.False(t, d.buffer.competing)
}
