package reliability

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

// newScoreboard returns a scoreboard of which n packets were sent, one each microsecond.
func newScoreboard(n int) (*Scoreboard, *SendLog, *Reordering) {
	log, order := &SendLog{}, &Reordering{}
	b := new(ScoreboardPool).New(at(0), log, order, false)
	for i := range n {
		log.Record(at(0), at(i+1), Time((i+1)*Microsecond))
	}
	return b, log, order
}

// lost returns the positions of the packets that Detect finds.
func lost(b *Scoreboard, now Time, top int) (found []int) {
	for _, p := range b.Detect(now, at(top)) {
		found = append(found, p.Sub(at(0)))
	}
	return found
}

// TestScoreboard checks that packets are lost when three later ones have arrived, or when the time
// for reordering has passed, and that lost retransmissions are found as well.
func TestScoreboard(t *testing.T) {
	const rtt = 100 * Microsecond
	b, _, _ := newScoreboard(10)
	require.False(t, b.Active())
	now := Time(rtt + 3*Microsecond)
	require.True(t, b.OnArrived(now, at(2)))
	require.False(t, b.OnArrived(now, at(2)))
	require.Empty(t, lost(b, now, 10))
	require.Equal(t, now+rtt/4-2*Microsecond, b.Deadline(), "a quarter of a round trip later than the packet that overtook it")
	require.True(t, b.OnArrived(now+1, at(3)))
	require.Equal(t, []int{0}, lost(b, now+1, 10), "three later ones")
	require.True(t, b.OnArrived(now+2, at(4)))
	require.Equal(t, []int{1}, lost(b, now+2, 10))
	require.True(t, b.IsLost(at(1)))

	b.OnResent(now+10, at(0), false)
	b.OnResent(now+10, at(1), false)
	p, ok := b.NextLost(at(0), at(10))
	require.False(t, ok, "%v", p)
	later := now + 10 + rtt
	require.True(t, b.OnArrived(later, at(1)))
	require.Empty(t, lost(b, later, 5))
	require.Equal(t, []int{0}, lost(b, b.Deadline(), 5), "the second retransmission has arrived, the first is lost")
	require.Nil(t, b.Advance(at(5)))
}

// TestScoreboardToleratesReordering checks that an observed delay is not taken for a loss again.
func TestScoreboardToleratesReordering(t *testing.T) {
	const rtt = 100 * Microsecond
	b, log, order := newScoreboard(40)
	for i := 1; i < 20; i++ { // 0 is 60 us late
		b.OnArrived(Time(rtt+i*Microsecond), at(i))
	}
	require.Equal(t, []int{0}, lost(b, rtt+20*Microsecond, 20))
	require.True(t, b.OnArrived(rtt+60*Microsecond, at(0)), "it was not")
	require.True(t, order.seen(rtt+60*Microsecond))
	require.Nil(t, b.Advance(at(20)))
	b = new(ScoreboardPool).New(at(20), log, order, false)
	for i := 21; i < 40; i++ {
		b.OnArrived(Time(rtt+i*Microsecond), at(i))
	}
	require.Empty(t, lost(b, rtt+70*Microsecond, 40))
	require.NotZero(t, b.Deadline())
	require.False(t, order.seen(rtt+61*Microsecond+reorderMemory), "forgotten")
}

// TestReplaysOvertake checks that the arrival of a response that was requested again does not make
// those lost that are in the responder's queue.
func TestReplaysOvertake(t *testing.T) {
	const rtt = 100 * Microsecond
	log, order := &SendLog{}, &Reordering{}
	b := new(ScoreboardPool).New(at(0), log, order, true)
	log.Record(at(0), at(100), 1)
	for i := 1; i < 10; i++ {
		b.OnArrived(rtt, at(i))
	}
	require.Equal(t, []int{0}, lost(b, rtt, 100))
	b.OnResent(rtt, at(0), false)
	require.True(t, b.OnArrived(2*rtt, at(0)))
	require.Nil(t, b.Advance(at(10)))
	b = new(ScoreboardPool).New(at(10), log, order, true)
	require.Empty(t, lost(b, 3*rtt, 100), "10 and later are still in the queue")
	b.OnResent(3*rtt, at(10), true)
	require.True(t, b.OnArrived(4*rtt, at(10)))
	require.Len(t, lost(b, 5*rtt, 100), 89, "the queue was empty when the probe was sent")
}

// TestArrivalsAgainstModel compares Arrivals with a map: a report has the recent arrivals, and
// nothing else.
func TestArrivalsAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Arrivals
		var s wire.SelectiveAck
		model, expected := map[int]bool{}, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "step") > 0 {
				p := expected + 1 + rapid.IntRange(0, 3000).Draw(t, "ahead")
				require.Equal(t, !model[p], a.Add(at(expected), at(p)))
				model[p] = true
			} else {
				for expected++; model[expected]; expected++ {
					require.True(t, a.Remove(at(expected)))
					delete(model, expected)
				}
			}
			require.Equal(t, len(model), a.Len())
			s.Blocks = s.Blocks[:0]
			a.Report(at(expected), &s)
			require.LessOrEqual(t, len(s.Blocks), wire.MaxSackBlocks)
			for _, b := range s.Blocks {
				for i := range 64 {
					if b.Arrived>>i&1 != 0 {
						p := b.PSN.Add(i).Sub(at(0))
						require.True(t, model[p] && p > expected, "%d", p)
					}
				}
			}
			if len(model) > 0 {
				require.NotEmpty(t, s.Blocks)
			}
		}
	})
}

// TestBandwidth checks the limits on a short and on a long path.
func TestBandwidth(t *testing.T) {
	var b Bandwidth
	const rtt = Millisecond
	require.Equal(t, 1000, b.Limit(1000, rtt, true, 1.25), "no estimate")
	for i := range 10 {
		b.OnArrived(Time((i+1)*rtt), 1_000_000, rtt)
	}
	require.Equal(t, 2_250_000, b.Limit(1_000_000, rtt, false, 1.25))
	require.Equal(t, 1_250_000, b.Limit(1_000_000, rtt, true, 1.25))
	require.Equal(t, 1_000_000, b.Limit(1_000_000, 40*Microsecond, false, 1.25), "a short path")
	require.Equal(t, minRecoveryWindow, b.Limit(1_000_000, 40*Microsecond, true, 1.25))
	b.OnCongestion()
	require.Equal(t, 1000, b.Limit(1000, rtt, true, 1.25))
}

// TestBandwidthStartup checks that the limit of a recovery holds only when the bandwidth has been
// found, so that losses at the start do not keep the window small.
func TestBandwidthStartup(t *testing.T) {
	var b Bandwidth
	const rtt = 10 * Millisecond
	now, n := Time(0), 100_000
	for range 8 {
		now += rtt
		b.OnArrived(now, n, rtt)
		n *= 2
		require.GreaterOrEqual(t, b.Limit(1_000_000, rtt, true, 1.25), 1_000_000)
	}
	for range startupRounds {
		now += rtt
		b.OnArrived(now, n/2, rtt)
	}
	require.InDelta(t, n/2*5/4, b.Limit(1_000_000, rtt, true, 1.25), 1)
}

// TestBandwidthOfIdlePath checks that rounds with less to send than the window permits do not lower
// the estimate, and that others do.
func TestBandwidthOfIdlePath(t *testing.T) {
	var b Bandwidth
	const rtt = 10 * Millisecond
	now := Time(1)
	round := func(n int, limited bool) {
		if limited {
			b.OnLimited()
		}
		now += rtt
		b.OnArrived(now, n, rtt)
	}
	b.OnArrived(now, 0, rtt)
	for range 4 {
		round(1_000_000, true)
	}
	for range 2 * bandwidthRounds {
		round(1000, false)
	}
	require.Equal(t, 1_250_000, b.Limit(1<<30, rtt, true, 1.25))
	for range bandwidthRounds {
		round(500_000, true)
	}
	require.Equal(t, 625_000, b.Limit(1<<30, rtt, true, 1.25))
}

// TestSendLog checks the times of bursts: exact ones while there are few, and later ones, in order,
// of the oldest when there are more than the log holds.
func TestSendLog(t *testing.T) {
	var l SendLog
	const n = 3 * maxSendBursts
	for i := range n {
		l.Record(at(0), at(2*i+2), Time(i+1))
		require.LessOrEqual(t, len(l.bursts), maxSendBursts)
	}
	before := uint64(0)
	for i := range n {
		for _, p := range []int{2 * i, 2*i + 1} {
			sent, serial := l.sentAt(at(p))
			require.GreaterOrEqual(t, sent, Time(i+1))
			require.GreaterOrEqual(t, serial, before)
			before = serial
			if i > n-maxSendBursts/2 {
				require.Equal(t, Time(i+1), sent, "%d", p)
			}
		}
	}
	sent, _ := l.sentAt(at(2 * n))
	require.Zero(t, sent, "not sent")
	l.Record(at(2*n), at(2*n+1), 1<<40)
	require.Len(t, l.bursts, 1, "the others are acknowledged")
}

// TestScoreboardPool checks that a pool returns the memory that it got, empty, and keeps a bounded part.
func TestScoreboardPool(t *testing.T) {
	pool, log, order := new(ScoreboardPool), &SendLog{}, &Reordering{}
	b := pool.New(at(0), log, order, false)
	b.OnArrived(1, at(5))
	b.Lose(at(3))
	b.Free()
	again := pool.New(at(7), log, order, true)
	require.Same(t, b, again)
	require.False(t, again.Active())
	for range 2 * maxPooledScoreboards {
		(&Scoreboard{pool: pool}).Free()
	}
	require.Len(t, pool.free, maxPooledScoreboards)
	pool.free = nil
	(&Scoreboard{pool: pool, resends: make([]resend, 0, maxPooledResends+1)}).Free()
	require.Empty(t, pool.free, "memory of many retransmissions")
	(*Scoreboard)(nil).Free()
}
