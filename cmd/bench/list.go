package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/internal/bench"
)

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [NAME...]",
		Short: "Every experiment with its source and claim, or those of these names",
		Long: "Experiments with their sources and claims, and what --set changes: all of them, or those\n" +
			"whose names begin with a NAME, or are of its form:\n\n" +
			"    bench list sdp\n" +
			"    bench list 'mpi-*' '*-latency'",
		RunE: func(_ *cobra.Command, names []string) error {
			experiments, err := a.registry.Match(names...)
			if err != nil {
				return usage("%w", err)
			}
			if asJSON {
				return a.listJSON(experiments)
			}
			for _, e := range experiments {
				fmt.Fprint(a.stdout, describe(e))
			}
			return nil
		},
	}
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

// settingColumn is how wide a setting may be that has its meaning beside it;
// one that is longer has it below.
const settingColumn = 24

func describe(e *bench.Experiment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  [%s; %s]\n    %s\n", e.Name, e.Layer, e.Source, e.Claim)
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
