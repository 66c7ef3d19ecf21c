package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/reliability"
)

// TestTimersAgainstMap checks that each queue pair is due at its earliest deadline, once, and in
// order, for deadlines that are set, moved and removed.
func TestTimersAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var timers timerQueue
		qps := make([]*queuePair, 20)
		for i := range qps {
			qps[i] = &queuePair{num: uint32(i)}
		}
		model := map[*queuePair]reliability.Time{}
		now := reliability.Time(1)
		some := rapid.IntRange(0, len(qps)-1)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				q := qps[some.Draw(t, "queue pair")]
				deadline := now + reliability.Time(rapid.IntRange(0, 100).Draw(t, "in"))
				timers.schedule(q, deadline)
				if at, ok := model[q]; !ok || deadline < at {
					model[q] = deadline
				}
			},
			"no deadline": func(t *rapid.T) { timers.schedule(qps[some.Draw(t, "queue pair")], 0) },
			"drop": func(t *rapid.T) {
				q := qps[some.Draw(t, "queue pair")]
				timers.remove(q)
				delete(model, q)
			},
			"pass": func(t *rapid.T) {
				now += reliability.Time(rapid.IntRange(0, 60).Draw(t, "time"))
				last := reliability.Time(0)
				for q := timers.popDue(now); q != nil; q = timers.popDue(now) {
					at, ok := model[q]
					require.True(t, ok)
					require.LessOrEqual(t, at, now)
					require.GreaterOrEqual(t, at, last)
					last = at
					delete(model, q)
				}
			},
			"": func(t *rapid.T) {
				earliest := reliability.Time(0)
				for _, at := range model {
					earliest = reliability.Earlier(earliest, at)
				}
				require.Equal(t, earliest, timers.nextDeadline())
			},
		})
	})
}
