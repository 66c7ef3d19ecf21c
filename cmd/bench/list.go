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
		Use:   "list",
		Short: "Every experiment with its source and claim",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.listJSON()
			}
			for _, e := range a.registry.All() {
				fmt.Fprint(a.stdout, describe(e))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

func (a *app) listJSON() error {
	enc := json.NewEncoder(a.stdout)
	for _, e := range a.registry.All() {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

func describe(e *bench.Experiment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  [%s; %s]\n    %s\n", e.Name, e.Layer, e.Source, e.Claim)
	for _, x := range e.Axes {
		fmt.Fprintf(&b, "    over %s (%s)\n", x.Name, x.Unit)
	}
	for _, p := range e.Params {
		fmt.Fprintf(&b, "      --set %-24s %s\n", p.Name+"="+p.Default, p.Doc)
	}
	return b.String()
}
