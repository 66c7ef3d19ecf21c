package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// Size of the screen that a summary fits on.
const (
	screenWidth = 100
	screenLines = 30
)

// A figureID identifies a figure of an experiment, without its series.
type figureID struct {
	experiment string
	x          float64
	unit       string
}

// Figures of the table.
var (
	oneWay  = figureID{"layers-latency", 8, measure.Microseconds}
	rate    = figureID{"layers-stream", 64, measure.MessagesPerSecond}
	stream  = figureID{"layers-stream", 64 << 10, measure.MegabytesPerSec}
	barrier = figureID{"imb-barrier", 4, measure.Microseconds}
)

// A comparison is a row of the table: a figure of a layer beside the same figure of a program
// that people use otherwise, and beside the limit. All are of one run.
type comparison struct {
	layer, label string
	figureID
	series string
	others []string // series to compare with; the first that was measured counts
	limit  string   // series of the limit; "": none
}

// Series to compare with.
var (
	tcpSocket = []string{"tcp"}
	udpSocket = []string{"udp-netpoll", "udp-packet"}
	otherMPI  = []string{"openmpi-tcp", "mpi-tcp", "tcp"}
)

var otherNames = map[string]string{
	"tcp": "TCP", "udp-netpoll": "UDP", "udp-packet": "UDP", "openmpi-tcp": "Open MPI", "mpi-tcp": "our MPI, TCP",
}

var comparisons = []comparison{
	{"VERBS", "RDMA write of 8 B, one way", oneWay, "rc-write", tcpSocket, "udp-spin"},
	{"", "RDMA writes of 64 B", rate, "rc-write", tcpSocket, "udp"},
	{"", "RDMA writes of 64 KiB", stream, "rc-write", tcpSocket, "udp"},
	{"RDM", "datagram of 8 B, one way", oneWay, "rdm-send", udpSocket, "udp-spin"},
	{"", "datagrams of 64 B", rate, "rdm-send", udpSocket, "udp"},
	{"", "datagrams of 64 KiB", stream, "rdm-send", udpSocket, "udp"},
	{"SDP", "Write of 8 B, one way", oneWay, "sdp-nic", tcpSocket, "udp-spin"},
	{"", "Writes of 64 B", rate, "sdp-nic", tcpSocket, ""}, // a packet has many
	{"", "Writes of 64 KiB", stream, "sdp-nic", tcpSocket, "udp"},
	{"MPI", "message of 8 B, one way", oneWay, "mpi-shared", otherMPI, "udp-spin"},
	{"", "messages of 64 B", rate, "mpi-shared", otherMPI, "udp"},
	{"", "messages of 64 KiB", stream, "mpi-shared", otherMPI, "udp"},
	{"", "barrier of 4 ranks", barrier, "mpi-shared", otherMPI, ""},
	{"ACP", "message of 8 B, one way", oneWay, "acp-imm-64KiB", tcpSocket, "udp-spin"},
	{"", "messages of 64 KiB", stream, "acp-imm-64KiB", tcpSocket, "udp"},
}

// A Screen is the content of a summary.
type Screen struct {
	Title   string // the machine
	Results []*bench.Result
	Notes   []string // conditions that affect the figures
	Footer  []string // lines at the end: the file with the details, and further commands
}

// Summary returns one screen with the results of quick runs: a table that compares the layers
// with other programs and with the limit, the effect of loss, the memory of queue pairs, and
// the checks. Claims are not judged, because that takes full runs. A figure that was not
// measured is replaced by the command that measures it.
func (s Screen) Summary() string {
	f := figures(s.Results)
	lines := append(Wrap(s.Title, "", "", screenWidth, 1),
		"Processes on this machine, measured in alternation. ratio: softrnic's speed over the other's.",
		"instead: sockets with a call for each message, or Open MPI over TCP. limit: bare UDP in batches.",
		fmt.Sprintf("%-36s%10s   %5s  %-22s  %5s  %10s", "", "softrnic", "ratio", "instead", "ratio", "limit"))
	for _, c := range comparisons {
		lines = append(lines, f.comparisonLine(c))
	}
	lines = append(lines, f.lossLine(), f.scaleLine())
	room := screenLines - len(lines) - len(s.Footer) - len(s.Notes)
	lines = append(lines, f.checkLines(room)...)
	for _, note := range s.Notes {
		lines = append(lines, Wrap(note, "NOTE    ", "", screenWidth, 1)...)
	}
	lines = append(lines, s.Footer...)
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// figures are the results from which the lines of a summary are made.
type figures []*bench.Result

// findResult returns the result of an experiment, or nil.
func (f figures) findResult(name string) *bench.Result {
	i := slices.IndexFunc(f, func(res *bench.Result) bool { return res.Experiment.Name == name })
	if i < 0 {
		return nil
	}
	return f[i]
}

// findRow returns the row of a series. It returns false if it was not measured.
func (f figures) findRow(id figureID, series string) (bench.Row, bool) {
	if res := f.findResult(id.experiment); res != nil {
		for _, r := range res.Rows {
			if r.Series == series && r.X == id.x && r.YUnit == id.unit {
				return r, true
			}
		}
	}
	return bench.Row{}, false
}

// findFigure returns the figure of a series. It returns false if it was not measured.
func (f figures) findFigure(id figureID, series string) (float64, bool) {
	r, ok := f.findRow(id, series)
	return r.Y, ok && r.Y > 0
}

// describeMissing describes why the figures of an experiment are missing.
func (f figures) describeMissing(experiment string) string {
	if res := f.findResult(experiment); res != nil && res.Err != nil {
		return "FAILED, see below"
	}
	return "not measured: bench run " + experiment
}

// comparisonLine returns a row of the table.
func (f figures) comparisonLine(c comparison) string {
	line := fmt.Sprintf("%-8s%-28s", c.layer, c.label)
	own, ok := f.findFigure(c.figureID, c.series)
	if !ok {
		return line + "  " + f.describeMissing(c.experiment)
	}
	line += fmt.Sprintf("%10s", formatQuantity(own, c.unit))
	ratio, other := "-", "-"
	for _, series := range c.others {
		if y, ok := f.findFigure(c.figureID, series); ok {
			ratio, other = formatSpeed(own, y, c.unit), fmt.Sprintf("%-12s%10s", otherNames[series], formatQuantity(y, c.unit))
			break
		}
	}
	line += fmt.Sprintf("   %5s  %-22s", ratio, other)
	if y, ok := f.findFigure(c.figureID, c.limit); ok {
		line += fmt.Sprintf("  %5s  %10s", formatSpeed(own, y, c.unit), formatQuantity(y, c.unit))
	}
	return line
}

// formatSpeed returns the ratio of two speeds in at most five characters. Of figures in a unit
// of time it is the inverse of their ratio.
func formatSpeed(own, other float64, unit string) string {
	r := own / other
	if unit == measure.Microseconds {
		r = other / own
	}
	switch {
	case r >= 99999:
		return strconv.FormatFloat(r, 'e', 0, 64)
	case r >= 99.995:
		return strconv.FormatFloat(r, 'f', 0, 64)
	case r < 0.0995:
		return strconv.FormatFloat(r, 'f', 3, 64)
	}
	return strconv.FormatFloat(r, 'f', 2, 64)
}

// formatQuantity formats a figure with its unit in few characters: "3.50 GB/s", "4.42 us".
func formatQuantity(v float64, unit string) string {
	scaled := func(by float64, unit string) string { return formatNumber(v/by) + " " + unit }
	switch {
	case unit == measure.MegabytesPerSec && v >= 1000:
		return scaled(1e3, "GB/s")
	case unit == measure.Bytes && v >= 1e6:
		return scaled(1e6, "MB")
	case unit == measure.Bytes && v >= 1e4:
		return scaled(1e3, "kB")
	case unit == measure.MessagesPerSecond && v >= 1e6:
		return scaled(1e6, "M/s")
	case unit == measure.MessagesPerSecond:
		return scaled(1e3, "k/s")
	}
	return scaled(1, unit)
}

// lossLine returns a line with the goodput of a lossy link.
func (f figures) lossLine() string {
	const experiment = "verbs-loss"
	line := "LOSS    RDMA writes"
	for i, loss := range []float64{0.1, 1} {
		id := figureID{experiment, loss, measure.MegabytesPerSec}
		lossy, ok := f.findFigure(id, "rc-write")
		lossless, ok2 := f.findFigure(id, "rc-write-lossless")
		if !ok || !ok2 {
			return "LOSS    " + f.describeMissing(experiment)
		}
		text := "%s, %g %% of packets lost: %s, %s of lossless"
		if i > 0 {
			text = "%s; %g %%: %s, %s"
		}
		line = fmt.Sprintf(text, line, loss, formatQuantity(lossy, id.unit), formatSpeed(lossy, lossless, id.unit))
	}
	return line
}

// scaleLine returns a line with memory and latency of many queue pairs.
func (f figures) scaleLine() string {
	const experiment, qps = "verbs-qps", 10000
	memory, ok := f.findFigure(figureID{experiment, qps, measure.Bytes}, "memory-per-qp")
	alone, ok1 := f.findFigure(figureID{experiment, qps, measure.Microseconds}, "rc-write-alone")
	among, ok2 := f.findFigure(figureID{experiment, qps, measure.Microseconds}, "rc-write")
	if !ok || !ok1 || !ok2 {
		return "SCALE   " + f.describeMissing(experiment)
	}
	return fmt.Sprintf("SCALE   %d connected queue pairs: %s each; one among them has %s of its speed alone",
		qps, formatQuantity(memory, measure.Bytes), formatSpeed(among, alone, measure.Microseconds))
}

// checkLines returns at most room lines, at least one, about the checks. There is a line
// for each failure as long as there is room, otherwise their number.
func (f figures) checkLines(room int) []string {
	var failures []string
	series := map[string]bool{}
	for _, res := range f {
		for _, r := range res.Rows {
			series[res.Experiment.Name+" "+r.Series] = true
		}
		failures = append(failures, Failures(res)...)
	}
	switch {
	case len(failures) == 0 && len(f) == 0:
		return []string{"CHECKED nothing"}
	case len(failures) == 0:
		return []string{fmt.Sprintf("CHECKED received data of all layers against the data sent: no error in %d experiments, %d series", len(f), len(series))}
	}
	var lines []string
	room = max(1, room)
	for i, failure := range failures {
		if left := len(failures) - i; len(lines) == room-1 && left > 1 {
			return append(lines, fmt.Sprintf("FAILED  %d more; the file below has all of them", left))
		}
		lines = append(lines, "FAILED  "+shorten(failure, screenWidth-len("FAILED  ")))
	}
	return lines
}

// Failures returns the error of a result and its exact statements that are refuted, each with the
// name of the experiment.
func Failures(res *bench.Result) (list []string) {
	if res.Err != nil {
		return []string{res.Err.Error()} // begins with the name
	}
	for _, o := range res.Outcomes {
		if o.Exact && o.Word == bench.Refuted {
			list = append(list, res.Experiment.Name+": "+o.Ours)
		}
	}
	return list
}

// shorten returns text on one line of at most n bytes. Dots replace its middle, because an error
// has the place of the failure at its beginning and the reason at its end.
func shorten(text string, n int) string {
	const dots = " ... "
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= n {
		return text
	}
	head := (n - len(dots)) / 2
	tail := n - len(dots) - head
	return strings.ToValidUTF8(text[:head], "") + dots + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// Wrap breaks text between words into at most n lines of the given width. The first line begins
// with first, the others with indent. Dots mark omitted text.
func Wrap(text, first, indent string, width, n int) []string {
	const dots = " ..."
	var lines []string
	words := strings.Fields(text)
	line := first
	for i, word := range words {
		limit := width
		if len(lines) == n-1 && i < len(words)-1 {
			limit -= len(dots)
		}
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) <= limit:
			line += " " + word
		case len(lines) == n-1:
			return append(lines, line+dots)
		default:
			lines, line = append(lines, line), indent+word
		}
	}
	return append(lines, line)
}
