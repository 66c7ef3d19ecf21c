package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// screenResults returns results with every figure of the screen. Times are time microseconds,
// and speeds are speed times those of the limit.
func screenResults(time, speed float64) (results []*bench.Result) {
	add := func(experiment string, x float64, unit string, figures map[string]float64) {
		i := slices.IndexFunc(results, func(res *bench.Result) bool { return res.Experiment.Name == experiment })
		if i < 0 {
			i = len(results)
			results = append(results, &bench.Result{Experiment: &bench.Experiment{Name: experiment}, Quick: true})
		}
		for series, y := range figures {
			results[i].Rows = append(results[i].Rows, bench.Row{Experiment: experiment, Series: series, X: x, YUnit: unit, Y: y})
		}
	}
	add("layers-latency", 8, measure.Microseconds, map[string]float64{
		"udp-spin": 2.5, "udp-netpoll": 9, "tcp": 16 * time, "rc-write": 4 * time, "rdm-send": 5, "sdp-nic": 5.5, "mpi-shared": 5.25,
		"acp-imm-64KiB": 5.75, "openmpi-tcp": 12.34 * time,
	})
	add("layers-stream", 64, measure.MessagesPerSecond, map[string]float64{
		"udp": 14e6 * speed, "udp-packet": 450e3, "tcp": 612e3, "rc-write": 2.4e6 * speed, "rdm-send": 0.9e6, "sdp-nic": 9e6, "mpi-shared": 1.5e6,
		"acp-imm-64KiB": 0.4e6, "openmpi-tcp": 1.1e6,
	})
	add("layers-stream", 64<<10, measure.MegabytesPerSec, map[string]float64{
		"udp": 4200, "udp-packet": 950, "tcp": 3900, "rc-write": 3500 * speed, "rdm-send": 2100, "sdp-nic": 3100, "mpi-shared": 3300,
		"acp-imm-64KiB": 3400, "openmpi-tcp": 2900,
	})
	add("imb-barrier", 4, measure.Microseconds, map[string]float64{"mpi-tcp": 110, "mpi-shared": 9.4, "openmpi-tcp": 180})
	for loss, y := range map[float64]float64{0.1: 2600, 1: 620} {
		add("verbs-loss", loss, measure.MegabytesPerSec, map[string]float64{"rc-write": y * speed, "rc-write-lossless": 3100})
	}
	add("verbs-qps", 10000, measure.Bytes, map[string]float64{"memory-per-qp": 1944 * speed})
	add("verbs-qps", 10000, measure.Microseconds, map[string]float64{"rc-write": 4.2, "rc-write-alone": 4})
	return results
}

// dropSeries returns the results without the rows of some series.
func dropSeries(results []*bench.Result, series ...string) []*bench.Result {
	for _, res := range results {
		res.Rows = slices.DeleteFunc(res.Rows, func(r bench.Row) bool { return slices.Contains(series, r.Series) })
	}
	return results
}

func TestSummary(t *testing.T) {
	s := Screen{Title: "softrnic v0 on 2 x Some CPU", Results: screenResults(1, 1), Notes: []string{"busy"}, Footer: []string{"DETAIL  x", "NEXT    y   z"}}
	require.Equal(t, strings.TrimSpace(goldenScreen), s.Summary())
}

const goldenScreen = `
softrnic v0 on 2 x Some CPU
Processes on this machine, measured in alternation. ratio: softrnic's speed over the other's.
instead: sockets with a call for each message, or Open MPI over TCP. limit: bare UDP in batches.
                                      softrnic   ratio  instead                 ratio       limit
VERBS   RDMA write of 8 B, one way     4.00 us    4.00  TCP            16.0 us   0.62     2.50 us
        RDMA writes of 64 B           2.40 M/s    3.92  TCP            612 k/s   0.17    14.0 M/s
        RDMA writes of 64 KiB        3.50 GB/s    0.90  TCP          3.90 GB/s   0.83   4.20 GB/s
RDM     datagram of 8 B, one way       5.00 us    1.80  UDP            9.00 us   0.50     2.50 us
        datagrams of 64 B              900 k/s    2.00  UDP            450 k/s  0.064    14.0 M/s
        datagrams of 64 KiB          2.10 GB/s    2.21  UDP           950 MB/s   0.50   4.20 GB/s
SDP     Write of 8 B, one way          5.50 us    2.91  TCP            16.0 us   0.45     2.50 us
        Writes of 64 B                9.00 M/s   14.71  TCP            612 k/s
        Writes of 64 KiB             3.10 GB/s    0.79  TCP          3.90 GB/s   0.74   4.20 GB/s
MPI     message of 8 B, one way        5.25 us    2.35  Open MPI       12.3 us   0.48     2.50 us
        messages of 64 B              1.50 M/s    1.36  Open MPI      1.10 M/s   0.11    14.0 M/s
        messages of 64 KiB           3.30 GB/s    1.14  Open MPI     2.90 GB/s   0.79   4.20 GB/s
        barrier of 4 ranks             9.40 us   19.15  Open MPI        180 us
ACP     message of 8 B, one way        5.75 us    2.78  TCP            16.0 us   0.43     2.50 us
        messages of 64 KiB           3.40 GB/s    0.87  TCP          3.90 GB/s   0.81   4.20 GB/s
LOSS    RDMA writes, 0.1 % of packets lost: 2.60 GB/s, 0.84 of lossless; 1 %: 620 MB/s, 0.20
SCALE   10000 connected queue pairs: 1944 B each; one among them has 0.95 of its speed alone
CHECKED received data of all layers against the data sent: no error in 5 experiments, 26 series
NOTE    busy
DETAIL  x
NEXT    y   z
`

// Every line fits, for the widest figures too.
func TestSummarySize(t *testing.T) {
	long := strings.Repeat("softrnic on a machine ", 20)
	failed := screenResults(1, 1)
	for _, res := range failed {
		res.Err = fmt.Errorf("%s: %s: the end of it", res.Experiment.Name, long)
	}
	for name, results := range map[string][]*bench.Result{
		"nothing": nil, "usual": screenResults(1, 1), "slow": screenResults(1e5, 1e-5), "fast": screenResults(1e-3, 1e5), "failed": failed,
	} {
		text := Screen{Title: long, Results: results, Notes: []string{long, long, long}, Footer: []string{"a", "b", "c", "d"}}.Summary()
		lines := strings.Split(text, "\n")
		require.LessOrEqual(t, len(lines), 30, name)
		require.Equal(t, "d", lines[len(lines)-1], name)
		for _, line := range lines {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 100, line)
			require.NotContains(t, line, "NaN", name)
			require.NotContains(t, line, "Inf", name)
		}
	}
}

func TestSummaryMissing(t *testing.T) {
	text := Screen{}.Summary()
	require.Contains(t, text, "VERBS   RDMA write of 8 B, one way    not measured: bench run layers-latency\n")
	require.Contains(t, text, "LOSS    not measured: bench run verbs-loss\nSCALE   not measured: bench run verbs-qps\nCHECKED nothing")

	text = Screen{Results: dropSeries(screenResults(1, 1), "openmpi-tcp", "udp-netpoll", "udp")}.Summary()
	require.Contains(t, text, "barrier of 4 ranks             9.40 us   11.70  our MPI, TCP    110 us\n")
	require.Contains(t, text, "message of 8 B, one way        5.25 us    3.05  TCP            16.0 us   0.48     2.50 us\n")
	require.Contains(t, text, "datagram of 8 B, one way       5.00 us       -  -                        0.50     2.50 us\n")
	require.Contains(t, text, "datagrams of 64 B              900 k/s    2.00  UDP            450 k/s\n")
}

// A failure is visible, and no figure hides it.
func TestSummaryFailures(t *testing.T) {
	results := screenResults(1, 1)
	results[1].Err, results[1].Rows = errors.New("layers-stream: mpi-shared: wrong data:\nbyte 3 of 64"), nil
	results[4].Outcomes = []bench.Outcome{{Word: bench.Refuted, Ours: "memory of a queue pair 5000 bytes (at most 4096)", Exact: true}}
	results[0].Outcomes = []bench.Outcome{{Word: bench.Refuted, Ours: "too slow"}}
	text := Screen{Results: results}.Summary()
	require.Contains(t, text, "        RDMA writes of 64 KiB         FAILED, see below\n")
	require.Contains(t, text, "FAILED  layers-stream: mpi-shared: wrong data: byte 3 of 64\nFAILED  verbs-qps: memory of a queue pair 5000 bytes (at most 4096)")
	require.NotContains(t, text, "CHECKED")
	require.NotContains(t, text, "too slow", "quick runs do not judge speed")

	for _, res := range results {
		res.Err = errors.New("no")
	}
	text = Screen{Results: results, Footer: make([]string, 7)}.Summary()
	require.Contains(t, text, "FAILED  no\nFAILED  4 more; the file below has all of them")
}

func TestFormatSpeed(t *testing.T) {
	for r, want := range map[float64]string{0: "0.000", 0.0641: "0.064", 0.0996: "0.10", 1.005: "1.00", 12.345: "12.35", 99.99: "99.99", 123.4: "123", 1e7: "1e+07"} {
		require.Equal(t, want, formatSpeed(r, 1, measure.MegabytesPerSec))
	}
	require.Equal(t, "4.00", formatSpeed(2, 8, measure.Microseconds))
}

func TestShorten(t *testing.T) {
	require.Equal(t, "a b", shorten("a\n b", 9))
	require.Equal(t, "abcd ... wxyz", shorten("abcdefghijklmnopqrstuvwxyz", 13))
	require.Equal(t, "a ... z", shorten("aééééééééz", 8))
}

func TestWrap(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("123456789 ", 20))
	require.Equal(t, []string{"a b"}, Wrap("a  b", "", "", 80, 1))
	require.Equal(t, []string{strings.Repeat("123456789 ", 7) + "123456789"}, Wrap(long[:79], "", "", 80, 1))
	require.Equal(t, []string{strings.Repeat("123456789 ", 7)[:69] + " ..."}, Wrap(long, "", "", 80, 1))
	require.Len(t, Wrap(long, "", "    ", 80, 9), 3)
}
