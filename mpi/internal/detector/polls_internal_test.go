package detector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/engine"
)

// TestPollStats checks which programs count as computing between their tests, after rounds of
// half a second.
func TestPollStats(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	for _, c := range []struct {
		name         string
		test, gap    time.Duration // mean durations
		burst        int           // number of tests
		pause        time.Duration // behind a burst
		descheduled  int           // 1 of so many parts of the time belongs to the program
		computesThen bool
	}{
		{"a tight loop", 1 * us, 0, 1, 0, 1, false},
		{"a tight loop with a select", 2 * us, 300 * time.Nanosecond, 1, 0, 1, false},
		{"a tight loop beside 7 others", 1 * us, 0, 1, 0, 8, false},
		{"slow tests", 200 * us, 5 * us, 1, 0, 1, false},
		{"a short computation behind each test", 1 * us, 50 * us, 1, 0, 1, true},
		{"a short computation behind slow tests", 200 * us, 50 * us, 1, 0, 1, true},
		{"a long computation behind each test", 1 * us, 20 * ms, 1, 0, 1, true},
		{"a long computation behind some tests", 1 * us, 0, 100, 20 * ms, 1, true},
		{"a sleep behind each test", 1 * us, 1 * ms, 1, 0, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			period := time.Duration(c.burst)*(c.test+c.gap) + c.pause
			tests := int(sampleInterval / period / time.Duration(c.descheduled) * time.Duration(c.burst))
			inside := time.Duration(tests) * c.test * time.Duration(c.descheduled)
			var s pollStats
			for range 20 {
				s.addRound(engine.PollTime{Total: sampleInterval, Inside: inside, Tests: tests})
				require.Equal(t, c.computesThen, s.isBusy())
			}
		})
	}
	var s pollStats
	s.addRound(engine.PollTime{Total: sampleInterval, Tests: 1})
	require.True(t, s.isBusy())
	s.addRound(engine.PollTime{Total: sampleInterval})
	s.addRound(engine.PollTime{Total: sampleInterval, Inside: sampleInterval / 2, Tests: 100_000})
	require.False(t, s.isBusy(), "a round without tests starts anew")
}
