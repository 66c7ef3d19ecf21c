package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/ledger"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

func (a *app) listCommand() *cobra.Command {
	var asJSON, verbose bool
	var from string
	c := &cobra.Command{
		Use:   "list [NAME...]",
		Short: "List experiments with their claims, the papers' numbers and ours",
		Long: "Lists experiments and the papers that they reproduce: all of them, or those whose names begin\n" +
			"with NAME or match it as a pattern, or that have a statement about this figure or paper. Each\n" +
			"statement of an experiment has a line with its outcome, the figure and the limit, and the\n" +
			"paper's number; the figures are those of the last recorded run, or of the files in DIR. With\n" +
			"-v or a NAME it prints complete statements with their reasons, and with -v the parameters of\n" +
			"--set, too.\n\n" +
			"    bench list sdp\n" +
			"    bench list -v 'mpi-*' '*-latency'\n" +
			"    bench list 'fig. 6a'\n" +
			"    bench list --from bench-out",
		RunE: func(c *cobra.Command, names []string) error {
			experiments, err := a.registry.Match(names...)
			if err != nil {
				return usageErrorf("%w", err)
			}
			runs, err := a.loadRuns(from)
			if err != nil {
				return err
			}
			l := listing{runs: runs, complete: verbose || len(names) > 0, params: verbose}
			if asJSON {
				return a.listJSON(experiments, runs)
			}
			_, err = fmt.Fprint(a.stdout, l.text(experiments))
			return err
		},
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "print complete statements and parameters")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	c.Flags().StringVar(&from, "from", "", "judge the figures of the files in `DIR` instead of the recorded ones")
	return c
}

// loadRuns returns the runs in a directory, or the recorded ones if dir is empty.
func (a *app) loadRuns(dir string) (map[string]report.Saved, error) {
	if dir == "" {
		return ledger.Recorded(a.registry)
	}
	if err := report.CheckResults(dir); err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	return ledger.Load(os.DirFS(dir), a.registry)
}

func (a *app) listJSON(experiments []*bench.Experiment, runs map[string]report.Saved) error {
	enc := json.NewEncoder(a.stdout)
	for _, e := range experiments {
		var outcomes []bench.Outcome
		if run, ok := runs[e.Name]; ok {
			outcomes = run.Outcomes
		}
		if err := enc.Encode(e.Describe(outcomes)); err != nil {
			return err
		}
	}
	return nil
}

// listWidth is the width of the list in columns.
const listWidth = 120

// A listing prints experiments, with the outcomes of runs.
type listing struct {
	runs     map[string]report.Saved
	complete bool // complete statements, not one line for each
	params   bool // parameters of --set, too
}

// text returns the list: experiments, and the papers that they reproduce.
func (l listing) text(experiments []*bench.Experiment) string {
	var lines []string
	var papers []*bench.Paper
	for _, e := range experiments {
		if l.complete {
			lines = append(lines, l.describe(e)...)
		} else {
			lines = append(lines, l.summarize(e)...)
		}
		for _, p := range e.Papers() {
			if !slices.Contains(papers, p) {
				papers = append(papers, p)
			}
		}
	}
	if len(papers) > 0 && !l.complete {
		lines = append(lines, "")
	}
	for _, p := range papers {
		lines = append(lines, report.Wrap(p.String(), fmt.Sprintf("%-5s  ", p.Short), "       ", listWidth, 4)...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// summarize returns a line for the experiment, and one for each statement.
func (l listing) summarize(e *bench.Experiment) []string {
	run, recorded := l.runs[e.Name]
	state := "no run is recorded"
	if recorded {
		state = bench.Count(run.Outcomes)
	}
	lines := []string{fmt.Sprintf("%-15s  %-21s  %s", e.Name, shortSource(e.Source), state)}
	for i, s := range e.Claims {
		word, value := "-", ""
		if recorded {
			word, value = string(run.Outcomes[i].Word), run.Outcomes[i].Value
		}
		text := s.Sentence
		if s.Paper != "" {
			text = fmt.Sprintf("paper: %s. %s", s.Paper, s.Sentence)
		}
		lines = append(lines, report.Wrap(text, fmt.Sprintf("  %-11s  %-22s  ", word, value), "", listWidth, 1)...)
	}
	return lines
}

// shortSource returns the source of an experiment for a column.
func shortSource(source string) string {
	if source == bench.Adapter {
		return "adapter"
	}
	return source
}

// settingColumn is the width of the column of settings. The description of a longer setting is
// on the next line.
const settingColumn = 24

// describe returns complete statements with their outcomes and, with params, the axes and the
// parameters.
func (l listing) describe(e *bench.Experiment) []string {
	run, recorded := l.runs[e.Name]
	lines := []string{fmt.Sprintf("%s  [%s; %s]", e.Name, e.Layer, e.Source)}
	lines = append(lines, report.Wrap(ledger.Describe(run, recorded), "    ", "    ", listWidth, 4)...)
	for i, s := range e.Claims {
		source := ""
		if e.SourceOf(i) != e.Source {
			source = fmt.Sprintf(" (%s)", e.SourceOf(i))
		}
		lines = append(lines, report.Wrap(s.Sentence+source, "  - ", "    ", listWidth, 9)...)
		if s.Paper != "" {
			lines = append(lines, report.Wrap(s.Paper, "    paper: ", "           ", listWidth, 4)...)
		}
		if recorded {
			lines = append(lines, report.Wrap(run.Outcomes[i].String(), "    here:  ", "           ", listWidth, 9)...)
		}
		if l.params {
			lines = append(lines, report.Wrap(s.Compare.String(), "    compared: ", "           ", listWidth, 9)...)
		}
	}
	if l.params {
		lines = append(lines, describeParams(e)...)
	}
	return append(lines, "")
}

// describeParams returns the axes of an experiment and its parameters.
func describeParams(e *bench.Experiment) (lines []string) {
	for _, x := range e.Axes {
		over := "    over " + x.Name
		if !strings.HasPrefix(x.Name, x.Unit) { // not "queue pairs (queue pairs)"
			over += fmt.Sprintf(" (%s)", x.Unit)
		}
		lines = append(lines, over)
	}
	for _, p := range e.Params {
		setting := p.Name + "=" + p.Default
		if len(setting) > settingColumn {
			lines = append(lines, "      --set "+setting, fmt.Sprintf("            %-*s  %s", settingColumn, "", p.Doc))
			continue
		}
		lines = append(lines, fmt.Sprintf("      --set %-*s  %s", settingColumn, setting, p.Doc))
	}
	return lines
}
