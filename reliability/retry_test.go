package reliability

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

// retryModel implements the rules of Retry a second time: counters count up instead of down,
// deadlines are recomputed each time.
type retryModel struct {
	timeout          int64
	retryCnt, rnrCnt int
	used, rnrUsed    int
	since            Time // of the last response, 0: no packet in flight
	rnrEnd           Time
	answered         int // position of the sequence NAK answered, -1: none
	silence          int // timeouts without a response
	refused          int // RNR waits for a peer that advertises receives, since then
}

func (m *retryModel) deadline() Time {
	switch {
	case m.rnrEnd != 0:
		return m.rnrEnd
	case m.since == 0 || m.timeout == 0:
		return 0
	}
	return m.since + Time([]int64{1, 2, 4}[min(m.silence, 2)]*m.timeout)
}

func (m *retryModel) consume() Action {
	if m.used == m.retryCnt {
		return GiveUp
	}
	m.used++
	return GoBack
}

// TestRetryAgainstModel compares Retry without probes with the model, until the retries are
// exhausted.
func TestRetryAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := retryModel{answered: -1, timeout: rapid.SampledFrom([]int64{0, 4096 << 3, 4096 << 14}).Draw(t, "timeout"),
			retryCnt: rapid.IntRange(0, 7).Draw(t, "retry_cnt"), rnrCnt: rapid.IntRange(0, 7).Draw(t, "rnr_retry")}
		var r Retry
		var rtt RTT
		r.Configure(m.timeout, uint8(m.retryCnt), uint8(m.rnrCnt), false)
		now, una := Time(1), 0
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			require.Equal(t, m.deadline(), r.Deadline())
			require.Equal(t, m.rnrEnd != 0, r.InRNRWait())
			require.Equal(t, m.used, r.RetriesUsed())
			if m.rnrCnt != RNRForever {
				require.Equal(t, m.rnrUsed, r.RNRRetriesUsed())
			}
			now += Time(rapid.Int64Range(0, 3000).Draw(t, "passes"))
			want := NoAction
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 6: // the peer advertises a receive
				waits := m.rnrEnd != 0
				if waits {
					m.rnrEnd, m.since = 0, now
				}
				require.Equal(t, waits, r.EndRNRWait(now, &rtt))
				continue
			case 0:
				r.OnSent(now, true, &rtt)
				if m.since == 0 {
					m.since = now
				}
				continue
			case 1:
				outstanding := rapid.Bool().Draw(t, "outstanding")
				r.OnProgress(now, outstanding, true, &rtt)
				una++
				m.used, m.rnrUsed, m.since, m.rnrEnd, m.answered, m.silence, m.refused = 0, 0, 0, 0, -1, 0, 0
				if outstanding {
					m.since = now
				}
				continue
			case 2: // a sequence NAK
				if m.rnrEnd == 0 && m.answered != una {
					if want = m.consume(); want == GoBack {
						m.answered, m.since, m.silence = una, now, 0
					}
				}
				require.Equal(t, want, r.OnSequenceNAK(now, at(una), &rtt))
			case 3: // an RNR NAK
				code := uint8(rapid.IntRange(0, 31).Draw(t, "code"))
				tells := rapid.Bool().Draw(t, "tells")
				if m.rnrEnd == 0 {
					want = GoBack
					if m.rnrCnt != RNRForever {
						if m.rnrUsed == m.rnrCnt {
							want = GiveUp
						}
						m.rnrUsed++
					}
					if want == GoBack {
						wait := rnrTable[code] * 10_000
						if tells && wait < 10_000_000 {
							for range m.refused {
								wait = min(2*wait, 10_000_000)
							}
							if wait < 10_000_000 {
								m.refused++
							}
						}
						m.rnrEnd, m.answered, m.silence = now+Time(wait), -1, 0
					}
				}
				require.Equal(t, want, r.OnRNR(now, code, tells))
			case 4: // time passes to the deadline
				if d := r.Deadline(); d != 0 {
					now = max(now, d)
				}
				fallthrough
			case 5:
				switch d := m.deadline(); {
				case d == 0 || now < d:
				case m.rnrEnd != 0:
					want, m.rnrEnd, m.since = GoBack, 0, now
				default:
					if want = m.consume(); want == GoBack {
						m.since, m.answered = now, -1
						m.silence++
					}
				}
				require.Equal(t, want, r.OnTimer(now, &rtt))
			}
			if want == GiveUp {
				return
			}
		}
	})
}

// rnrTable is the table of RNR timers in units of 10 us, written a second time.
var rnrTable = [32]int64{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// TestRetryCounts checks the number of retries for all values of retry_cnt and rnr_retry.
func TestRetryCounts(t *testing.T) {
	for limit := range uint8(8) {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			var rtt RTT
			var r Retry
			r.Configure(1000, limit, limit, false)
			r.OnSent(1, true, &rtt)
			for i := range int(limit) {
				require.Equal(t, GoBack, r.OnTimer(r.Deadline(), &rtt), i)
			}
			require.Equal(t, GiveUp, r.OnTimer(r.Deadline(), &rtt))

			r.Configure(1000, limit, limit, false)
			for i := range int(limit) {
				require.Equal(t, GoBack, r.OnRNR(Time(i), 1, false))
				require.Equal(t, GoBack, r.OnTimer(r.Deadline(), &rtt))
			}
			last := GiveUp
			if limit == RNRForever {
				last = GoBack
			}
			require.Equal(t, last, r.OnRNR(1<<40, 1, false))
		})
	}
}

// TestRetryBudget checks that a silent peer fails after 27 timeouts with retry_cnt 7: the first
// attempt waits for one, the first retry for two, and six more for four each.
func TestRetryBudget(t *testing.T) {
	for code, want := range map[int]int64{14: 1812 * Millisecond, 16: 7248 * Millisecond} {
		var rtt RTT
		var r Retry
		r.Configure(4096<<code, 7, 7, true)
		const begin = Time(1)
		r.OnSent(begin, true, &rtt)
		now, action := begin, NoAction
		for action != GiveUp {
			now = r.Deadline()
			action = r.OnTimer(now, &rtt)
		}
		require.EqualValues(t, 27*4096<<code, now-begin)
		require.InDelta(t, want, int64(now-begin), Millisecond)
	}
}

// TestProbeSchedule checks that probes have growing intervals, each at least that of the round-trip
// time, are never after the timeout, and are not counted as retries.
func TestProbeSchedule(t *testing.T) {
	var rtt RTT
	rtt.OnSent(1, at(0))
	rtt.OnAck(1 + 100*Microsecond)
	var r Retry
	r.Configure(100*Millisecond, 3, 7, true)
	r.OnSent(1000, true, &rtt)
	start, interval := Time(1000), Time(2*Millisecond)
	for at := start; interval < 100*Millisecond; interval *= 2 {
		at += interval
		if at >= start+100*Millisecond {
			break
		}
		require.Equal(t, at, r.Deadline())
		require.Equal(t, NoAction, r.OnTimer(at-1, &rtt))
		require.Equal(t, Probe, r.OnTimer(at, &rtt))
	}
	require.Zero(t, r.RetriesUsed())
	require.Equal(t, start+100*Millisecond, r.Deadline())
	require.Equal(t, GoBack, r.OnTimer(r.Deadline(), &rtt))
	require.Equal(t, 1, r.RetriesUsed())
	require.Equal(t, start+102*Millisecond, r.Deadline(), "and from the beginning")
}

// TestLazyProbe checks that a packet without an acknowledgement request is probed later, until
// another packet requests one.
func TestLazyProbe(t *testing.T) {
	var rtt RTT
	rtt.OnSent(1, at(0))
	rtt.OnAck(1 + 100*Microsecond)
	var r Retry
	r.Configure(100*Millisecond, 3, 7, true)
	r.OnSent(1000, false, &rtt)
	require.EqualValues(t, 1000+DelayedAckProbe, r.Deadline())
	r.OnSent(2000, false, &rtt)
	require.EqualValues(t, 1000+DelayedAckProbe, r.Deadline(), "since the first")
	require.Equal(t, Probe, r.OnTimer(r.Deadline(), &rtt))
	require.True(t, r.ProbeSent())
	require.EqualValues(t, 1000+3*DelayedAckProbe, r.Deadline())
	const asks = 1000 + DelayedAckProbe + 500
	r.OnSent(asks, true, &rtt)
	require.EqualValues(t, asks+4*Millisecond, r.Deadline(), "from now on as always, the second probe")
	r.OnSent(asks+1, false, &rtt)
	require.EqualValues(t, asks+4*Millisecond, r.Deadline())
	r.OnProgress(asks+2, true, false, &rtt)
	require.False(t, r.ProbeSent())
	require.EqualValues(t, asks+2+DelayedAckProbe, r.Deadline(), "the remaining packets request no acknowledgement")
	r.OnProgress(asks+3, true, true, &rtt)
	require.EqualValues(t, asks+3+2*Millisecond, r.Deadline())
	r.OnProgress(asks+4, false, false, &rtt)
	require.Zero(t, r.Deadline())
}

// TestNoProbes checks that there are no probes to other adapters than softrnic, and none without a
// timeout.
func TestNoProbes(t *testing.T) {
	var rtt RTT
	var r Retry
	r.Configure(100*Millisecond, 3, 7, false)
	r.OnSent(5, true, &rtt)
	require.EqualValues(t, 5+100*Millisecond, r.Deadline())
	r = Retry{}
	r.Configure(0, 3, 7, true)
	r.OnSent(5, true, &rtt)
	require.Zero(t, r.Deadline())
	require.Equal(t, NoAction, r.OnTimer(1<<60, &rtt))
}

// TestProbeAllowsAnotherNAK checks that after a probe the peer's NAK for the same PSN counts again.
func TestProbeAllowsAnotherNAK(t *testing.T) {
	var rtt RTT
	var r Retry
	r.Configure(100*Millisecond, 3, 7, true)
	r.OnSent(5, true, &rtt)
	require.Equal(t, GoBack, r.OnSequenceNAK(6, at(0), &rtt))
	require.Equal(t, NoAction, r.OnSequenceNAK(7, at(0), &rtt))
	require.Equal(t, Probe, r.OnTimer(r.Deadline(), &rtt))
	require.Equal(t, GoBack, r.OnSequenceNAK(8, at(0), &rtt))
}

// TestRetryStop checks that Stop discards the state of packets in flight.
func TestRetryStop(t *testing.T) {
	var rtt RTT
	var r Retry
	r.Configure(1000, 3, 3, false)
	r.OnSent(5, true, &rtt)
	r.OnRNR(6, 1, false)
	r.Stop()
	require.Zero(t, r.Deadline())
	require.False(t, r.InRNRWait())
	require.Zero(t, r.RetriesUsed()+r.RNRRetriesUsed())
}

// TestRNRBacksOff checks that a peer that advertises its receives gets retries with backoff, at
// least every RNRLong, until there is progress, and an immediate one after the advertisement.
func TestRNRBacksOff(t *testing.T) {
	var r Retry
	var rtt RTT
	r.Configure(1000*Millisecond, 7, RNRForever, true)
	now := Time(1)
	r.OnSent(now, true, &rtt)
	const code = 1 // 10 us
	wait := func(tells bool) int64 {
		require.Equal(t, GoBack, r.OnRNR(now, code, tells))
		d := r.Deadline() - now
		now = r.Deadline()
		require.Equal(t, GoBack, r.OnTimer(now, &rtt))
		return int64(d)
	}
	least := wire.RNRNanos(code)
	for want := least; want < MaxRNRWait; want *= 2 {
		require.Equal(t, want, wait(true))
	}
	for range 300 {
		require.EqualValues(t, MaxRNRWait, wait(true))
	}
	require.Equal(t, least, wait(false), "other peers keep their interval")
	require.EqualValues(t, MaxRNRWait, wait(true))

	require.Equal(t, GoBack, r.OnRNR(now, code, true))
	require.Equal(t, NoAction, r.OnTimer(now, &rtt))
	require.True(t, r.EndRNRWait(now, &rtt))
	require.False(t, r.InRNRWait())
	require.False(t, r.EndRNRWait(now, &rtt))
	require.Greater(t, r.Deadline(), now, "what is sent again has its timers")

	r.OnProgress(now, true, true, &rtt)
	require.Equal(t, least, wait(true))
}

// TestLateTimeoutsSpendNoRetry checks that a timeout handled later than its own length spends no
// retry, as many times as there are retries. One that is slightly late does, and so does each
// timeout of a peer that has terminated.
func TestLateTimeoutsSpendNoRetry(t *testing.T) {
	const timeout = 1000
	for _, c := range []struct {
		name    string
		retries uint8
		late    int64 // in timeouts, which double
		action  []Action
		spent   int
	}{
		{"in time", 2, 0, []Action{GoBack, GoBack, GiveUp}, 2},
		{"a little late", 2, 1, []Action{GoBack, GoBack, GiveUp}, 2},
		{"late", 2, 2, []Action{GoBack, GoBack, GoBack, GoBack, GiveUp}, 2},
		{"late without retries", 0, 2, []Action{GoBack, GiveUp}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Retry
			var rtt RTT
			r.Configure(timeout, c.retries, RNRForever, false)
			now := Time(1)
			r.OnSent(now, true, &rtt)
			for _, want := range c.action {
				due := r.Deadline()
				now = due + (due-now)*Time(c.late)
				require.Equal(t, want, r.OnTimer(now, &rtt))
			}
			require.Equal(t, c.spent, r.RetriesUsed())
			r.OnProgress(now, true, true, &rtt)
			require.Equal(t, now+timeout, r.Deadline())
			if c.late > 1 {
				require.Equal(t, GoBack, r.OnTimer(now+3*timeout+1, &rtt))
				require.Zero(t, r.RetriesUsed(), "progress restores that, too")
			}
		})
	}
}

// TestEarlyProbes checks that probes leave earlier after a loss, but for delayed acknowledgements.
func TestEarlyProbes(t *testing.T) {
	var r Retry
	rtt := &RTT{smoothed: 20 * Microsecond, variation: 5 * Microsecond}
	r.Configure(100*Millisecond, 7, 7, true)
	r.OnSent(1, true, rtt)
	require.EqualValues(t, 1+minProbeTimeout, r.Deadline())
	r.SetEarlyProbes(true)
	r.OnProgress(1, true, true, rtt)
	require.EqualValues(t, 1+earlyProbeTimeout, r.Deadline())
	r.OnProgress(1, true, false, rtt)
	require.EqualValues(t, 1+DelayedAckProbe, r.Deadline())
}
