package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

func (a *app) reportCommand() *cobra.Command {
	f := runFlags{out: a.saveDir}
	var from string
	c := &cobra.Command{
		Use:   "report",
		Short: "Run all experiments and write one HTML page",
		Long: "Runs all experiments and writes one HTML page, which is updated after each experiment, so\n" +
			"that it is complete up to an interrupt. With --from the page is created from files that\n" +
			"report or `bench run --out` has saved, without running experiments.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from != "" {
				for _, name := range []string{"quick", "set"} {
					if c.Flags().Changed(name) {
						return usageErrorf("--from %s: no experiments run; --%s not allowed", from, name)
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
	c.Flags().StringVar(&from, "from", "", "create the page from the files in `DIR`")
	return c
}

// runReport runs all experiments and writes the page after each of them, including failed ones.
func (a *app) runReport(c *cobra.Command, experiments []*bench.Experiment, o bench.Options, out string) error {
	machine := a.describeMachine()
	results := make([]report.Saved, len(experiments))
	for i, e := range experiments {
		results[i] = report.Saved{Result: &bench.Result{Experiment: e, Err: report.ErrNotRun}, Machine: machine}
	}
	var page string
	n := 0
	err := a.runAll(c.Context(), experiments, sameOptions(o), newEstimate(experiments, o, out), func(res *bench.Result) error {
		results[n].Result = res
		n++
		_, err := fmt.Fprintln(a.stdout, report.Text(res))
		if err == nil {
			err = report.Save(out, machine, res)
		}
		if err != nil {
			return err
		}
		page, err = report.SavePage(out, results)
		if n == 1 && err == nil {
			fmt.Fprintf(a.stderr, "%s has the results so far\n", page)
		}
		return err
	})
	if page != "" {
		_, writeErr := fmt.Fprintln(a.stdout, page)
		err = errors.Join(err, writeErr)
	}
	return err
}

// reportFrom writes the page from the files in dir. If out is another directory, it also saves
// the linked files there.
func (a *app) reportFrom(dir, out string) error {
	results, err := report.Load(dir, a.registry)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	if filepath.Clean(out) != filepath.Clean(dir) {
		for _, res := range results {
			if err := report.Save(out, res.Machine, res.Result); err != nil {
				return err
			}
		}
	}
	page, err := report.SavePage(out, results)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, page)
	return err
}
