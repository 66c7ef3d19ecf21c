package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

func (a *app) listCommand() *cobra.Command {
	var asJSON, verbose bool
	c := &cobra.Command{
		Use:   "list [NAME...]",
		Short: "List experiments with source and claim",
		Long: "Lists experiments, one per line, and the papers that they reproduce: all of them, or those\n" +
			"whose names begin with NAME or match it as a pattern, or that reproduce this figure or paper.\n" +
			"With -v it prints complete claims, and the parameters of --set.\n\n" +
			"    bench list sdp\n" +
			"    bench list -v 'mpi-*' '*-latency'\n" +
			"    bench list 'RCUD fig. 6a'",
		RunE: func(_ *cobra.Command, names []string) error {
			experiments, err := a.registry.Match(names...)
			if err != nil {
				return usageErrorf("%w", err)
			}
			if asJSON {
				return a.listJSON(experiments)
			}
			if verbose {
				for _, e := range experiments {
					fmt.Fprint(a.stdout, describeExperiment(e))
				}
				return nil
			}
			fmt.Fprint(a.stdout, listShort(experiments))
			return nil
		},
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "print complete claims and parameters")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

func (a *app) listJSON(experiments []*bench.Experiment) error {
	enc := json.NewEncoder(a.stdout)
	for _, e := range experiments {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// listWidth is the width of the short list in columns.
const listWidth = 80

// listShort returns a line for each experiment, with as much of its claim as fits, followed by
// the papers.
func listShort(experiments []*bench.Experiment) string {
	var lines []string
	var papers []*bench.Paper
	for _, e := range experiments {
		source := e.Source
		if source == bench.Adapter {
			source = "adapter"
		}
		lines = append(lines, report.Wrap(e.Claim(), fmt.Sprintf("%-15s  %-16s  ", e.Name, source), "", listWidth, 1)...)
		if p := e.Paper(); p != nil && !slices.Contains(papers, p) {
			papers = append(papers, p)
		}
	}
	if len(papers) > 0 {
		lines = append(lines, "")
	}
	for _, p := range papers {
		lines = append(lines, report.Wrap(p.String(), fmt.Sprintf("%-5s  ", p.Short), "       ", listWidth, 4)...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// settingColumn is the width of the column of settings. The description of a longer setting is
// on the next line.
const settingColumn = 24

func describeExperiment(e *bench.Experiment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  [%s; %s]\n    %s\n", e.Name, e.Layer, e.Source, e.Claim())
	if p := e.Paper(); p != nil {
		fmt.Fprintf(&b, "    %s\n", p)
		if found := e.Reported(); found != "" {
			fmt.Fprintf(&b, "    the paper: %s\n", found)
		}
	}
	for _, x := range e.Axes {
		fmt.Fprintf(&b, "    over %s", x.Name)
		if !strings.HasPrefix(x.Name, x.Unit) { // not "queue pairs (queue pairs)"
			fmt.Fprintf(&b, " (%s)", x.Unit)
		}
		b.WriteByte('\n')
	}
	for _, p := range e.Params {
		setting := p.Name + "=" + p.Default
		if len(setting) > settingColumn {
			fmt.Fprintf(&b, "      --set %s\n            %-*s  %s\n", setting, settingColumn, "", p.Doc)
			continue
		}
		fmt.Fprintf(&b, "      --set %-*s  %s\n", settingColumn, setting, p.Doc)
	}
	b.WriteByte('\n')
	return b.String()
}
