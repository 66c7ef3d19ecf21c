package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// saveDir is where report writes unless --out says otherwise.
const saveDir = "bench-out"

func (a *app) reportCommand() *cobra.Command {
	f := runFlags{out: saveDir}
	var from string
	c := &cobra.Command{
		Use:   "report",
		Short: "Run every experiment and write one HTML page",
		Long: "Runs every experiment and writes one HTML page, which is kept up to date while they run:\n" +
			"after an interrupt it has what was measured so far. With --from the page is made of files\n" +
			"that report or `bench run --out` wrote, and nothing is run.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from != "" {
				for _, name := range []string{"quick", "set"} {
					if c.Flags().Changed(name) {
						return usageErrorf("--from %s runs nothing, so there is no --%s", from, name)
					}
				}
				if !c.Flags().Changed("out") {
					f.out = from
				}
				return a.reportFrom(from, f.out)
			}
			experiments := a.registry.All()
			o, err := f.parseOptions(experiments)
			if err != nil {
				return err
			}
			return a.runReport(c, experiments, o, f.out)
		},
	}
	f.addFlags(c.Flags())
	c.Flags().StringVar(&from, "from", "", "make the page of the files in `DIR`")
	return c
}

// runReport writes the page after each experiment, also of those that failed: it says so.
func (a *app) runReport(c *cobra.Command, experiments []*bench.Experiment, o bench.Options, out string) error {
	machine := a.describeMachine()
	results := make([]*bench.Result, len(experiments))
	for i, e := range experiments {
		results[i] = &bench.Result{Experiment: e, Err: report.ErrNotRun}
	}
	var page string
	n := 0
	err := a.runAll(c.Context(), experiments, sameOptions(o), newEstimate(experiments, o, out), func(res *bench.Result) error {
		results[n] = res
		n++
		_, err := fmt.Fprintln(a.stdout, report.Text(res))
		if err == nil {
			err = report.Save(out, machine, res)
		}
		if err != nil {
			return err
		}
		page, err = report.SavePage(out, machine, results)
		if n == 1 && err == nil {
			fmt.Fprintf(a.stderr, "%s shows what is done so far\n", page)
		}
		return err
	})
	if page != "" {
		_, lost := fmt.Fprintln(a.stdout, page)
		err = errors.Join(err, lost)
	}
	return err
}

// reportFrom writes the page of the files in dir; elsewhere with the files that it links to.
func (a *app) reportFrom(dir, out string) error {
	results, machine, err := report.Load(dir, a.registry)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	if filepath.Clean(out) != filepath.Clean(dir) {
		for _, res := range results {
			if err := report.Save(out, machine, res); err != nil {
				return err
			}
		}
	}
	page, err := report.SavePage(out, machine, results)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, page)
	return err
}
