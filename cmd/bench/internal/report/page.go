package report

import (
	"bytes"
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
	*bench.Result
	Charts []figure
	Mark   mark
}

// A figure is a chart with a caption.
type figure struct {
	Chart   template.HTML
	Title   string
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
	Machine   env.Fingerprint
	Date      string
	Revision  string
	Busy      string // load average, if higher than the number of processors
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
func Page(w io.Writer, machine env.Fingerprint, results []*bench.Result) error {
	p := page{
		Machine: machine, Date: machine.Get("date"), Revision: machine.Get("revision"), Busy: highLoad(machine),
		Head: headCells(results), Counts: map[mark]int{}, RatioNote: RatioNote,
	}
	for _, res := range results {
		charts, err := drawCharts(res)
		if err != nil {
			return err
		}
		s := section{res, charts, markOf(res)}
		p.Sections = append(p.Sections, s)
		p.Counts[s.Mark]++
		p.outcomes = append(p.outcomes, res.Outcomes...)
		p.Claims += len(res.Experiment.Claims)
	}
	p.Sources = groupBySource(p.Sections)
	return pageTemplate.Execute(w, p)
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

// headFigures are the figures at the head of the page.
var headFigures = []struct {
	description string
	figureID
	series string
}{
	{"RDMA write of 8 B, one way", figureID{"verbs-latency", 8, measure.Microseconds}, "rc-write"},
	{"RDMA writes of 64 KiB", figureID{"verbs-bandwidth", 64 << 10, measure.MegabytesPerSec}, "rc-write"},
	{"RDMA writes of 8 B in lists of 32", figureID{"verbs-rate", 32, measure.MessagesPerSecond}, "rc-write"},
	{"RDMA writes at 0.1\u00a0% loss", figureID{"verbs-loss", 0.1, measure.MegabytesPerSec}, "rc-write"},
}

// headCells returns the cells at the head of the page.
func headCells(results []*bench.Result) (cells []headCell) {
	for _, c := range headFigures {
		cell := headCell{Figure: "–", Description: c.description, Comparison: "bench run " + c.experiment}
		if r, ok := figures(results).findRow(c.figureID, c.series); ok {
			cell.Figure, cell.Comparison = formatQuantity(r.Y, r.YUnit), ""
			if r.Against != nil {
				cell.Comparison = formatRatio(r.Ratio) + " " + r.Baseline
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// drawCharts draws each panel of a result as a chart of its own.
func drawCharts(res *bench.Result) (charts []figure, err error) {
	for _, p := range panelsOfResult(res) {
		svg, err := drawPanels([]*panel{p})
		if err != nil {
			return nil, err
		}
		charts = append(charts, figure{inlineSVG(svg), p.chartTitle(), p.chartCaption()})
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
