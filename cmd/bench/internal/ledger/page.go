package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// pageWidth is the width of the lines of the page.
const pageWidth = 120

const pageHead = `# The papers' figures, judged

Each experiment of [bench](performance.md) judges statements: the sentences of the papers about their figures, and claims of
our own. This page has every statement with the paper's number, the figure of the last recorded run here, and the outcome.
It is generated: ` + "`go run ./cmd/bench record DIR`" + ` takes the runs that ` + "`bench run --out DIR`" + ` saved, and a test compares the
page with the statements and the recorded figures. ` + "`bench list`" + ` prints the same.

| outcome | meaning |
| --- | --- |
| reproduced | the paper's statement holds here |
| beyond | it holds, and the figure passes the paper's number by half or more |
| holds | a claim of our own holds |
| refuted | a figure misses the limit; the cause follows as far as it is known |
| not reached | the run did not measure what the statement is about |
| not judged | noise, an opponent that is missing, or a quick run near the limit |

One figure that misses the limit refutes a statement, and only all of its figures together let it pass. A comparator
whose rounds spread more than 1.5, or that is 2 times off its own best of the run, decides nothing, and neither do rounds
of ours that spread as much and lie on both sides of the limit, whichever side their median is on.
`

// Page returns the page in Markdown: the experiments of each paper, and those of no paper.
func Page(registry *bench.Registry, runs map[string]report.Saved) []byte {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString("\n| paper | outcomes |\n| --- | --- |\n")
	for _, p := range papers() {
		var outcomes []bench.Outcome
		missing := 0
		for _, e := range experimentsOf(registry, p) {
			if run, ok := runs[e.Name]; ok {
				outcomes = append(outcomes, run.Outcomes...)
			} else {
				missing += len(e.Claims)
			}
		}
		counts := bench.Count(outcomes)
		if missing > 0 {
			counts = strings.TrimPrefix(fmt.Sprintf("%s, %d not recorded", counts, missing), ", ")
		}
		fmt.Fprintf(&b, "| %s | %s |\n", paperName(p), counts)
	}
	for _, p := range papers() {
		fmt.Fprintf(&b, "\n## %s\n", paperName(p))
		if p != nil {
			fmt.Fprintf(&b, "\n%s\n", wrapLines(p.String()+".", ""))
		}
		for _, e := range experimentsOf(registry, p) {
			writeExperiment(&b, e, runs)
		}
	}
	return []byte(b.String())
}

// papers returns the papers, and nil for the experiments of none.
func papers() []*bench.Paper { return append(slices.Clone(bench.Papers), nil) }

func paperName(p *bench.Paper) string {
	if p == nil {
		return "The adapter itself"
	}
	return p.Short
}

// experimentsOf returns the experiments of a paper in the order of its figures.
func experimentsOf(registry *bench.Registry, p *bench.Paper) []*bench.Experiment {
	list := slices.DeleteFunc(registry.All(), func(e *bench.Experiment) bool { return e.Paper() != p })
	slices.SortStableFunc(list, bench.CompareFigures)
	return list
}

// writeExperiment writes the section of an experiment.
func writeExperiment(b *strings.Builder, e *bench.Experiment, runs map[string]report.Saved) {
	title := "`" + e.Name + "`"
	if figure := e.Figure(); figure != "" {
		title = fmt.Sprintf("%s: %s", strings.ToUpper(figure[:1])+figure[1:], title)
	}
	fmt.Fprintf(b, "\n### %s\n\n", title)
	run, ok := runs[e.Name]
	fmt.Fprintf(b, "%s\n\n", wrapLines(Describe(run, ok), ""))
	for i, s := range e.Claims {
		text := s.Sentence
		if source := e.SourceOf(i); source != e.Source {
			text += fmt.Sprintf(" (%s)", source)
		}
		if s.Paper != "" {
			text += fmt.Sprintf(" Paper: %s.", s.Paper)
		}
		if ok {
			text += fmt.Sprintf(" **%s**: %s.", run.Outcomes[i].Word, outcomeText(run.Outcomes[i]))
		}
		fmt.Fprintf(b, "%s\n", wrapLines(text, "- "))
	}
}

// outcomeText returns the figure of an outcome and its reason.
func outcomeText(o bench.Outcome) string {
	parts := slices.DeleteFunc([]string{o.Ours, o.Reason}, func(s string) bool { return s == "" })
	return strings.Join(parts, "; ")
}

// Describe describes a recorded run, or says that there is none.
func Describe(run report.Saved, ok bool) string {
	if !ok {
		return "No run is recorded."
	}
	kind := "full"
	if run.Quick {
		kind = "quick"
	}
	text := fmt.Sprintf("Recorded in a %s run", kind)
	if len(run.Set) > 0 {
		var set []string
		for key, value := range run.Set {
			set = append(set, key+"="+value)
		}
		slices.Sort(set)
		text += " with " + strings.Join(set, " ")
	}
	return strings.TrimSpace(text+" "+run.Circumstances()) + "."
}

// wrapLines breaks text into lines of the page. The first begins with first, and the others are
// indented by its length.
func wrapLines(text, first string) string {
	return strings.Join(report.Wrap(text, first, strings.Repeat(" ", len(first)), pageWidth, len(text)), "\n")
}
