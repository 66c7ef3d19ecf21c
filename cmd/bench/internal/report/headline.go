package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A headline is a row of an experiment that the summary shows.
type headline struct {
	label      string // text of the line
	experiment string
	series     string
	x          float64
	yUnit      string
	rival      string // series to compare with instead of the row's baseline, if measured
}

// The lines of the summary. A line of bandwidths has two sizes, bandwidthSizes.
var (
	latencies = []headline{
		{label: "bare UDP, polling", experiment: "verbs-latency", series: "udp-spin", x: 8},
		{label: "RDMA write, RC", experiment: "verbs-latency", series: "rc-write", x: 8},
		{label: "MPI message", experiment: "mpi-latency", series: "mpi-fast", x: 8, rival: openMPI},
		{label: "SDP socket (net.Conn)", experiment: "sdp-latency", series: "sdp-nic", x: 64},
		{label: "Go TCP", experiment: "sdp-latency", series: "tcp", x: 64},
	}
	bandwidths = []headline{
		{label: "bare UDP", experiment: "verbs-bandwidth", series: "udp"},
		{label: "RDMA write", experiment: "verbs-bandwidth", series: "rc-write"},
		{label: "RDMA read", experiment: "verbs-bandwidth", series: "rc-read"},
		{label: "MPI messages", experiment: "mpi-bandwidth", series: "mpi-fast", rival: openMPI},
		{label: "SDP socket", experiment: "sdp-bandwidth", series: "sdp-nic-default"},
		{label: "Go TCP", experiment: "sdp-bandwidth", series: "tcp"},
	}
	rates = []headline{
		{label: "writes of 8 B, lists of 32", experiment: "verbs-rate", series: "rc-write", x: 32, yUnit: measure.MessagesPerSecond},
		{label: "write goodput, 0.1 % loss", experiment: "verbs-loss", series: "rc-write", x: 0.1, yUnit: measure.MegabytesPerSec},
		{label: "idle queue pair of 10,000", experiment: "verbs-qps", series: "memory-per-qp", x: 10000, yUnit: measure.Bytes},
		{label: "barrier of 4 ranks", experiment: "imb-barrier", series: "mpi-shared", x: 4, yUnit: measure.Microseconds, rival: openMPI},
	}
	bandwidthSizes = [...]float64{64 << 10, 1 << 20}
)

// openMPI is the series of Open MPI, which is a faster baseline than mpi-tcp.
const openMPI = "openmpi-tcp"

// HeadlineExperiments returns the names of the experiments whose figures the summary shows,
// each once.
func HeadlineExperiments() (names []string) {
	for _, h := range slices.Concat(latencies, bandwidths, rates) {
		if !slices.Contains(names, h.experiment) {
			names = append(names, h.experiment)
		}
	}
	return names
}

// findRow returns the row of h in the results, or false if it was not measured.
func (h headline) findRow(results []*bench.Result) (bench.Row, bool) {
	for _, res := range results {
		if res.Experiment.Name != h.experiment {
			continue
		}
		for _, r := range res.Rows {
			if r.Series == h.series && r.X == h.x && r.YUnit == h.yUnit {
				return r, true
			}
		}
	}
	return bench.Row{}, false
}

// compareToBaseline returns the ratio of r to the rival series or to its baseline, and the name
// of that series. It returns false if there is neither.
func (h headline) compareToBaseline(results []*bench.Result, r bench.Row) (ratio float64, baseline string, ok bool) {
	if h.rival != "" {
		other := h
		other.series = h.rival
		if o, measured := other.findRow(results); measured && o.Y != 0 {
			return r.Y / o.Y, baselineName(h.rival), true
		}
	}
	if r.Against == nil {
		return 0, "", false
	}
	return r.Ratio, baselineName(r.Baseline), true
}

// baselineName returns the name of a series in the summary.
func baselineName(series string) string {
	switch {
	case series == openMPI:
		return "Open MPI"
	case series == "mpi-tcp":
		return "MPI on TCP"
	case series == "tcp":
		return "TCP"
	case strings.HasPrefix(series, "udp"):
		return "UDP"
	case strings.Contains(series, "lossless"):
		return "lossless"
	}
	return series
}

// meaningfulP99 is the minimum number of events for which the 99th percentile is shown.
const meaningfulP99 = 100

// formatQuantity formats a figure with its unit in few characters: "3.50 GB/s", "4.42 us".
func formatQuantity(v float64, unit string) string {
	switch {
	case unit == measure.MegabytesPerSec && v >= 1000:
		return strconv.FormatFloat(v/1000, 'f', 2, 64) + " GB/s"
	case unit == measure.MessagesPerSecond && v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', 2, 64) + " M/s"
	case unit == measure.Bytes && v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', 2, 64) + " MB"
	case unit == measure.MessagesPerSecond:
		return formatNumber(v) + " /s"
	}
	return formatNumber(v) + " " + unit
}

// formatASCIIRatio formats a ratio in ASCII: "1.37 x".
func formatASCIIRatio(r float64) string { return strings.TrimSuffix(formatRatio(r), "×") + " x" }

// latencyLine returns a line with median and 99th percentile.
func (h headline) latencyLine(results []*bench.Result) string {
	h.yUnit = measure.Microseconds
	r, ok := h.findRow(results)
	if !ok {
		return h.missingLine()
	}
	p99 := "-"
	if r.Stats != nil && r.N >= meaningfulP99 {
		p99 = formatQuantity(r.P99, r.YUnit)
	}
	line := fmt.Sprintf("  %-22s %5s %10s %10s", h.label, formatX(r.X, r.XUnit), formatQuantity(r.Y, r.YUnit), p99)
	if ratio, baseline, ok := h.compareToBaseline(results, r); ok {
		line += "   " + formatASCIIRatio(ratio) + " " + baseline
	}
	return line
}

// bandwidthLine returns a line with the figures of bandwidthSizes.
func (h headline) bandwidthLine(results []*bench.Result) string {
	h.yUnit = measure.MegabytesPerSec
	line, over, some := fmt.Sprintf("  %-22s", h.label), "", false
	for _, h.x = range bandwidthSizes {
		figure, against := "-", ""
		if r, ok := h.findRow(results); ok {
			figure, some = formatQuantity(r.Y, r.YUnit), true
			if ratio, baseline, ok := h.compareToBaseline(results, r); ok {
				against, over = formatASCIIRatio(ratio), baseline
			}
		}
		line += fmt.Sprintf(" %10s %8s", figure, against)
	}
	if !some {
		return h.missingLine()
	}
	return strings.TrimRight(line+"  "+over, " ")
}

// rateLine returns a line with one figure and its ratio.
func (h headline) rateLine(results []*bench.Result) string {
	r, ok := h.findRow(results)
	if !ok {
		return h.missingLine()
	}
	line := fmt.Sprintf("  %-28s %10s", h.label, formatQuantity(r.Y, r.YUnit))
	if ratio, baseline, ok := h.compareToBaseline(results, r); ok {
		line += "   " + formatASCIIRatio(ratio) + " " + baseline
	}
	return line
}

// missingLine returns the line of a figure that was not measured.
func (h headline) missingLine() string {
	return fmt.Sprintf("  %-28s not measured: bench run %s", h.label, h.experiment)
}
