package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/report"
)

// saveDir is where report writes unless --out says otherwise.
const saveDir = "bench-out"

func (a *app) reportCommand() *cobra.Command {
	f := runFlags{out: saveDir}
	c := &cobra.Command{
		Use:   "report",
		Short: "Run every experiment and write one HTML page",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			experiments := a.registry.All()
			o, err := f.options(experiments)
			if err != nil {
				return err
			}
			return a.report(c, experiments, o, f.out)
		},
	}
	f.add(c.Flags())
	return c
}

// report writes the page also when experiments failed: it says so.
func (a *app) report(c *cobra.Command, experiments []*bench.Experiment, o bench.Options, out string) error {
	machine := a.describeMachine()
	var results []*bench.Result
	var unwritten error
	failed := a.runAll(c.Context(), experiments, same(o), func(res *bench.Result) error {
		results = append(results, res)
		if _, unwritten = fmt.Fprintln(a.stdout, report.Text(res)); unwritten == nil {
			unwritten = report.Save(out, machine, res)
		}
		return unwritten
	})
	if unwritten != nil {
		return unwritten
	}
	page, err := report.SavePage(out, machine, results)
	if err == nil {
		_, err = fmt.Fprintln(a.stdout, page)
	}
	return errors.Join(failed, err)
}
