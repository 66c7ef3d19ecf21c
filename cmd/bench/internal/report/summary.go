package report

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// Size of the screen that a summary fits on.
const (
	screenWidth = 80
	screenLines = 26
)

// Summary returns one screen with the results of quick runs: figures of all layers with their
// baselines, the number of reproduced paper figures, and the notes. A figure that was not
// measured is replaced by the command that measures it.
func Summary(title string, results []*bench.Result, all []*bench.Experiment, notes []string) string {
	lines := append(Wrap(title, "", "  ", 2), fmt.Sprintf("%-40s %8s %10s", "LATENCY, half a round trip", "p50", "p99"))
	for _, h := range latencies {
		lines = append(lines, h.latencyLine(results))
	}
	lines = append(lines, fmt.Sprintf("%-24s %10s %8s %10s", "BANDWIDTH", formatX(bandwidthSizes[0], "B"), "", formatX(bandwidthSizes[1], "B")))
	for _, h := range bandwidths {
		lines = append(lines, h.bandwidthLine(results))
	}
	lines = append(lines, "RATE AND SCALE")
	for _, h := range rates {
		lines = append(lines, h.rateLine(results))
	}
	lines = append(lines, paperLines(results, all, screenLines-len(lines)-len(notes))...)
	for _, note := range notes {
		lines = append(lines, Wrap(note, "", "", 1)...)
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// paperLines returns at most room lines with the number of paper figures that agree in quick
// runs, and the experiments that differ or failed.
func paperLines(results []*bench.Result, all []*bench.Experiment, room int) []string {
	by := map[bench.State][]string{}
	for _, res := range results {
		if state := res.QuickState(); state == bench.Failed || res.Experiment.Paper() != nil {
			by[state] = append(by[state], describeState(res, state))
		}
	}
	figures := 0
	for _, e := range all {
		if e.Paper() != nil {
			figures++
		}
	}
	agree, unclear, differ := len(by[bench.Agrees]), len(by[bench.NeedRun]), len(by[bench.Differs])
	lines := []string{fmt.Sprintf("PAPERS: %d figures, %d run, quick: %d agree, %d need `bench run`, %d differ",
		figures, agree+unclear+differ, agree, unclear, differ)}
	for _, kind := range []struct {
		state bench.State
		word  string
	}{{bench.Failed, "failed"}, {bench.Differs, "differ"}, {bench.NeedRun, "need run"}} {
		if names := by[kind.state]; len(names) > 0 && room > len(lines) {
			lines = append(lines, Wrap(kind.word+": "+strings.Join(names, ", "), "  ", "    ", min(2, room-len(lines)))...)
		}
	}
	return lines
}

// describeState returns the name of the experiment, with the deciding figure if the result
// differs.
func describeState(res *bench.Result, state bench.State) string {
	if c := res.Verdict.Decisive(); state == bench.Differs && c != nil {
		return fmt.Sprintf("%s (%s, claim %s)", res.Experiment.Name, formatNumber(c.Figure), formatNumber(c.Limit))
	}
	return res.Experiment.Name
}

// Wrap breaks text between words into at most n lines of the screen's width. The first line
// begins with first, the others with indent. Dots mark omitted text.
func Wrap(text, first, indent string, n int) []string {
	const dots = " ..."
	var lines []string
	words := strings.Fields(text)
	line := first
	for i, word := range words {
		limit := screenWidth
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
