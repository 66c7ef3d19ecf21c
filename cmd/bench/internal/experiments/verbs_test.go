package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// smallRun is a small run of an experiment: its settings, and the expected rows by unit.
type smallRun struct {
	name  string
	long  bool // skipped with -short
	set   bench.Settings
	units map[string][]string // series
}

var adapterTests = []smallRun{
	{
		name: "verbs-latency",
		set:  bench.Settings{"sizes": "8,5000", "iters": "50", "rounds": "2"},
		units: map[string][]string{measure.Microseconds: {
			"udp-spin", "udp-block", "udp-spin-round-trip", "udp-block-round-trip",
			"rc-write", "rc-send", "uc-write", "ud-send", "rc-read", "rc-atomic",
			"rc-write-event", "rc-send-event", "uc-write-event", "ud-send-event", "rc-read-event", "rc-atomic-event",
		}},
	},
	{
		name: "verbs-bandwidth",
		set:  bench.Settings{"sizes": "64KiB", "rounds": "2", "time": "5ms"},
		units: map[string][]string{measure.MegabytesPerSec: {
			"udp", "rc-write", "rc-send", "rc-read", "uc-write", "ud-send",
			"udp-mtu1024", "rc-write-mtu1024", "rc-send-mtu1024", "rc-read-mtu1024",
			"udp-default-buffer", "rc-write-default-buffer", "rc-send-default-buffer", "rc-read-default-buffer",
		}},
	},
	{
		name:  "verbs-rate",
		long:  true,
		set:   bench.Settings{"lists": "1,32", "rounds": "2", "time": "5ms"},
		units: map[string][]string{measure.MessagesPerSecond: {"udp", "udp-packet", "rc-write", "rc-send", "rc-read", "uc-write", "ud-send"}},
	},
	{
		name: "verbs-qps",
		long: true,
		set:  bench.Settings{"qps": "3,10000", "iters": "100", "rounds": "2"},
		units: map[string][]string{
			measure.Microseconds: {"udp-spin", "rc-write-alone", "rc-write", "rc-write-round-robin"},
			measure.Bytes:        {"memory-per-qp", "memory-per-qp-peer"},
		},
	},
	{
		name: "verbs-loss",
		long: true,
		set:  bench.Settings{"losses": "0.1,1", "rounds": "1", "time": "10ms", "size": "10000"},
		units: map[string][]string{measure.MegabytesPerSec: {
			"rc-write-lossless", "rc-write", "rc-write-lossless-delay-1ms", "rc-write-delay-1ms",
		}},
	},
	{
		name: "ib-transports",
		long: true,
		set:  bench.Settings{"latency": "8,10000", "bandwidth": "4KiB,10000", "iters": "50", "rounds": "2", "time": "5ms", "beside": "nothing"},
		units: map[string][]string{
			measure.Microseconds:    {"udp-spin", "rc-send", "ud-send"},
			measure.MegabytesPerSec: {"udp", "rc-send", "ud-send"},
		},
	},
	{
		name:  "ib-qp-memory",
		set:   bench.Settings{"peers": "16,64"},
		units: map[string][]string{measure.Bytes: {"rc", "ud"}},
	},
	{
		name:  "ib-qp-latency",
		set:   bench.Settings{"qps": "2,40", "iters": "100", "rounds": "2"},
		units: map[string][]string{measure.Microseconds: {"udp-spin", "rc-write", "rc-write-icm"}},
	},
	{
		name:  "ib-concurrency",
		set:   bench.Settings{"senders": "2", "iters": "30", "rounds": "2"},
		units: map[string][]string{measure.Microseconds: {"udp-block", "copy", "zero-copy"}},
	},
}

// Every experiment of the adapter emits its documented rows.
func TestAdapterExperiments(t *testing.T) {
	for _, c := range adapterTests {
		t.Run(c.name, func(t *testing.T) {
			c.check(t)
		})
	}
}

// check runs the experiment. It requires the expected rows, with their baselines, and a
// verdict. Whether the verdict holds depends on the load of the machine.
func (c smallRun) check(t *testing.T) {
	if c.long && testing.Short() {
		t.Skip("takes some seconds")
	}
	found, err := bench.Default.Find(c.name)
	require.NoError(t, err)
	res, err := bench.Execute(t.Context(), found[0], bench.Options{Quick: true, Set: c.set})
	require.NoError(t, err)
	require.NotEmpty(t, res.Verdict.Reason)

	type place struct {
		series string
		x      float64
		unit   string
	}
	rows := map[place]bool{}
	for _, r := range res.Rows {
		at := place{r.Series, r.X, r.YUnit}
		require.False(t, rows[at], "%+v comes twice", at)
		rows[at] = true
		if r.Series != "tcp" || r.YUnit[0] != '%' { // the reader of TCP may keep its buffers empty
			require.Positive(t, r.Y, "%+v", at)
		}
	}
	for _, r := range res.Rows {
		if r.Against != nil {
			require.True(t, rows[place{r.Baseline, r.X, r.YUnit}], "baseline %s of %s at %v", r.Baseline, r.Series, r.X)
			require.Positive(t, r.Ratio)
		}
	}
	for unit, series := range c.units {
		for _, s := range series {
			require.Condition(t, func() bool {
				for at := range rows {
					if at.series == s && at.unit == unit {
						return true
					}
				}
				return false
			}, "no row of %s in %s", s, unit)
		}
	}
}

func TestEvaluation(t *testing.T) {
	var j evaluation
	require.False(t, j.makeVerdict().Holds)
	require.Contains(t, j.makeVerdict().Reason, "no figure")
	j.atMost("a", 1.4, 1.4)
	j.atLeast("b", 0.8, 0.8)
	require.Equal(t, bench.Verdict{Holds: true, Reason: "a 1.40 (at most 1.40), b 0.80 (at least 0.80)", Checks: []bench.Check{
		{Description: "a 1.40 (at most 1.40)", Figure: 1.4, Limit: 1.4, Holds: true},
		{Description: "b 0.80 (at least 0.80)", Figure: 0.8, Limit: 0.8, Holds: true},
	}}, j.makeVerdict())
	j.atMost("c", 1.41, 1.4)
	require.False(t, j.makeVerdict().Holds)

	var remarks evaluation
	remarks.addRemark("nobody was %s", "there")
	requireVerdict(t, bench.Verdict{Reason: "no figure of the claim was measured; nobody was there"}, remarks.makeVerdict())
	remarks.atMost("a", 1, 1)
	require.True(t, remarks.makeVerdict().Holds)
	require.Equal(t, "a 1.00 (at most 1.00); nobody was there", remarks.makeVerdict().Reason)
}

func TestImpairSpec(t *testing.T) {
	require.Equal(t, "", impairSpec("", "0"))
	require.Equal(t, "loss 0.1% seed 7", impairSpec("0.1", "0"))
	require.Equal(t, "delay 1ms limit 1000000 loss 5% seed 7", impairSpec("5", "1ms"))
	require.Equal(t, "delay 1ms limit 1000000", impairSpec("", "1ms"))
}
