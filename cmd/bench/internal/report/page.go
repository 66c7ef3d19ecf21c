package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": formatNumber,
	"place":  measure.FormatAt,
	"ratio":  formatRatio,
	"mark":   markOfWord,
}).Parse(pageHTML))

// A section is one experiment on the page.
type section struct {
	Saved
	First  []figure // one chart, or none
	Others []figure
	Mark   mark
}

// A figure is a chart with a legend and a caption.
type figure struct {
	Chart   template.HTML
	Legend  []legendEntry
	Caption string
}

// A mark is the outcome of a claim. It is also a CSS class.
type mark string

const (
	holds   mark = "holds"   // all statements hold
	part    mark = "part"    // some hold, and the others were not judged
	refuted mark = "refuted" // a statement is refuted
	unclear mark = "unclear" // no statement was judged
	failed  mark = "failed"
	missing mark = "missing" // not run
)

// Word returns the mark as text for readers.
func (m mark) Word() string {
	switch m {
	case unclear:
		return "not judged"
	case part:
		return string(bench.PartJudged)
	case missing:
		return "not run"
	}
	return string(m)
}

// A source has the experiments of one paper, or those of no paper.
type source struct {
	ID, Name, Title string
	Sections        []section
}

// A headCell is a figure at the head of the page.
type headCell struct{ Figure, Description, Comparison string }

// page is the data of the template.
type page struct {
	Machines  []env.Fingerprint // one for each commit, date or load
	Runs      string            // their dates and commits
	Busy      string            // load average, if higher than the number of processors
	Head      []headCell
	Counts    map[mark]int
	Claims    int // statements of all experiments
	outcomes  []bench.Outcome
	Sources   []source
	Sections  []section
	RatioNote string
}

// Page writes one HTML page with all results. Charts and styles are inline, so that the page
// works without a network and as a single file. Its links to data files lead to the files of
// Save and SavePage.
func Page(w io.Writer, results []Saved) error {
	p := page{Head: headCells(results), Counts: map[mark]int{}, RatioNote: RatioNote}
	p.Machines = distinctMachines(results)
	p.Runs = describeRuns(p.Machines)
	for _, m := range p.Machines {
		p.Busy = cmp.Or(p.Busy, highLoad(m))
	}
	for _, res := range results {
		charts, err := drawCharts(res.Result)
		if err != nil {
			return err
		}
		first := min(1, len(charts))
		s := section{res, charts[:first], charts[first:], markOf(res.Result)}
		p.Sections = append(p.Sections, s)
		p.Counts[s.Mark]++
		p.outcomes = append(p.outcomes, res.Outcomes...)
		p.Claims += len(res.Experiment.Claims)
	}
	p.Sources = groupBySource(p.Sections)
	return pageTemplate.Execute(w, p)
}

// distinctMachines returns the machines of the results that have run, each once.
func distinctMachines(results []Saved) (machines []env.Fingerprint) {
	for _, s := range results {
		if !errors.Is(s.Err, ErrNotRun) && !slices.ContainsFunc(machines, func(m env.Fingerprint) bool { return slices.Equal(m, s.Machine) }) {
			machines = append(machines, s.Machine)
		}
	}
	return machines
}

// describeRuns returns the date and the commit of the runs, or their range and number if they differ.
func describeRuns(machines []env.Fingerprint) string {
	facts := func(name string) (values []string) {
		for _, m := range machines {
			if v := m.Get(name); v != "" {
				values = append(values, v)
			}
		}
		slices.Sort(values)
		return slices.Compact(values)
	}
	var parts []string
	if dates := facts("date"); len(dates) > 1 {
		parts = append(parts, dates[0]+" to "+dates[len(dates)-1])
	} else {
		parts = append(parts, dates...)
	}
	if revisions := facts("revision"); len(revisions) > 1 {
		parts = append(parts, fmt.Sprintf("%d commits", len(revisions)))
	} else {
		parts = append(parts, revisions...)
	}
	return strings.Join(parts, ", ")
}

// Outcome returns the number of statements of each outcome, and of experiments without any.
func (p page) Outcome() string {
	var parts []string
	if text := bench.Count(p.outcomes); text != "" {
		parts = append(parts, text)
	}
	for _, m := range []mark{failed, missing} {
		if n := p.Counts[m]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d of %d experiments", m.Word(), n, len(p.Sections)))
		}
	}
	return strings.Join(parts, ", ")
}

// highLoad returns the load average before the run if it was higher than the number of
// processors, else "".
func highLoad(machine env.Fingerprint) string {
	cores, _, _ := strings.Cut(machine.Get("cores"), ",")
	n, err := strconv.Atoi(cores)
	if err != nil {
		n = runtime.NumCPU()
	}
	if load, err := strconv.ParseFloat(machine.Get("load"), 64); err == nil && load > float64(n) {
		return machine.Get("load")
	}
	return ""
}

// headFigures are the figures at the head of the page, with the series that they are compared with.
var headFigures = []struct {
	description string
	figureID
	series, over, name string
}{
	{"RDMA write of 8 B in shared memory, one way", figureID{"shared-memory", 8, measure.Microseconds}, "rc-write", "openmpi-shared", "Open MPI"},
	{"RDMA write of 8 B over sockets, one way", figureID{"sockets", 8, measure.Microseconds}, "rc-write", "udp-spin", "UDP"},
	{"RDMA writes of 64 KiB", figureID{"verbs-bandwidth", 64 << 10, measure.MegabytesPerSec}, "rc-write", "udp", "UDP"},
	{"RDMA writes of 8 B in lists of 32", figureID{"verbs-rate", 32, measure.MessagesPerSecond}, "rc-write", "udp", "UDP"},
	{"RDMA writes at 0.1\u00a0% loss", figureID{"verbs-loss", 0.1, measure.MegabytesPerSec}, "rc-write", "rc-write-lossless", "no loss"},
}

// headCells returns the cells at the head of the page.
func headCells(results []Saved) (cells []headCell) {
	var all figures
	for _, s := range results {
		all = append(all, s.Result)
	}
	for _, c := range headFigures {
		cell := headCell{Figure: "–", Description: c.description, Comparison: "bench run " + c.experiment}
		if own, ok := all.findFigure(c.figureID, c.series); ok {
			cell.Figure, cell.Comparison = formatQuantity(own, c.unit), c.name+": not measured"
			if other, ok := all.findFigure(c.figureID, c.over); ok {
				cell.Comparison = fmt.Sprintf("%s× the speed of %s", formatSpeed(own, other, c.unit), c.name)
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// drawCharts draws each panel of a result as a chart of its own.
func drawCharts(res *bench.Result) (charts []figure, err error) {
	for _, p := range panelsOfResult(res) {
		svg, err := p.drawAlone()
		if err != nil {
			return nil, err
		}
		charts = append(charts, figure{inlineSVG(svg), p.legendEntries(), p.chartCaption(res.Outcomes)})
	}
	return charts, nil
}

// groupBySource groups the sections by paper. Those without a paper come last.
func groupBySource(sections []section) (sources []source) {
	at := map[*bench.Paper]int{}
	for _, p := range append(slices.Clone(bench.Papers), nil) {
		at[p] = len(sources)
		s := source{ID: "ours", Name: bench.Adapter}
		if p != nil {
			s = source{ID: p.Short, Name: p.Short + " paper", Title: p.String()}
		}
		sources = append(sources, s)
	}
	for _, s := range sections {
		i := at[s.Experiment.Paper()]
		sources[i].Sections = append(sources[i].Sections, s)
	}
	for _, s := range sources {
		slices.SortStableFunc(s.Sections, func(a, b section) int {
			return bench.CompareFigures(a.Experiment, b.Experiment)
		})
	}
	return slices.DeleteFunc(sources, func(s source) bool { return len(s.Sections) == 0 })
}

// ErrNotRun is the error of an experiment that has not run.
var ErrNotRun = errors.New("not run")

// markOf returns the mark of a result.
func markOf(res *bench.Result) mark {
	switch {
	case errors.Is(res.Err, ErrNotRun):
		return missing
	case res.Err != nil:
		return failed
	}
	return markOfWord(bench.Verdict(res.Outcomes))
}

// markOfWord returns the mark of an outcome.
func markOfWord(word bench.Word) mark {
	switch word {
	case bench.Refuted:
		return refuted
	case bench.PartJudged:
		return part
	case bench.NotReached, bench.NotJudged:
		return unclear
	}
	return holds
}

// inlineSVG strips the XML prolog from an SVG document. The SVG is drawn by this package, which
// escapes all text in it.
func inlineSVG(svg []byte) template.HTML {
	if i := bytes.Index(svg, []byte("<svg")); i > 0 {
		svg = svg[i:]
	}
	return template.HTML(svg)
}

// Seconds returns the elapsed time of the experiment.
func (s section) Seconds() string { return s.Elapsed.Round(100 * time.Millisecond).String() }

// Figure returns the part of the source that names the figure: "fig. 6a" of "RCUD fig. 6a".
func (s section) Figure() string { return s.Experiment.Figure() }

// Reported returns the results that the paper reports for the figure.
func (s section) Reported() string { return s.Experiment.Reported() }

// Deciding returns the outcome of the paper's statement that decides the mark: the first that is refuted, or
// else the first that passes, or else the first.
func (s section) Deciding() (decides bench.Outcome) {
	rank := func(o bench.Outcome) int {
		switch {
		case o.Source == bench.Adapter && s.Experiment.Paper() != nil:
			return 0
		case o.Word == bench.Refuted:
			return 3
		case o.IsPass():
			return 2
		}
		return 1
	}
	best := -1
	for _, o := range s.Outcomes {
		if r := rank(o); r > best {
			decides, best = o, r
		}
	}
	return decides
}

// IsOther reports whether a statement has another source than the experiment.
func (s section) IsOther(source string) bool { return source != s.Experiment.Source }

// Counts returns the number of statements of each outcome.
func (s section) Counts() string { return bench.Count(s.Outcomes) }

// Files reports whether Save wrote data files of the section.
func (s section) Files() bool { return len(s.Rows) > 0 }

// Command returns the command line that repeats the run.
func (s section) Command() string {
	words := []string{"bench run", s.Experiment.Name}
	if s.Quick {
		words = append(words, "--quick")
	}
	var set []string
	for key, value := range s.Set {
		set = append(set, "--set '"+key+"="+value+"'")
	}
	slices.Sort(set)
	return strings.Join(append(words, set...), " ")
}
