package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
	"github.com/softrnic/softrnic/rnic"
)

// runFlags are the common flags of run and report.
type runFlags struct {
	quick bool
	set   []string
	out   string
}

func (f *runFlags) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&f.quick, "quick", false, "fewer and shorter rounds")
	flags.StringArrayVar(&f.set, "set", nil, "set a parameter, `key=value`; may be repeated (`bench list -v` shows parameters)")
	flags.StringVar(&f.out, "out", f.out, "write NAME.jsonl, NAME.csv, NAME.txt and NAME.svg into `DIR`")
}

// parseOptions checks --set against the experiments to run, and that the directory of --out is
// writable.
func (f *runFlags) parseOptions(experiments []*bench.Experiment) (bench.Options, error) {
	set, err := bench.ParseSettings(f.set)
	if err != nil {
		return bench.Options{}, usageErrorf("--set: %w", err)
	}
	if err := applyWire(set); err != nil {
		return bench.Options{}, usageErrorf("--set: %w", err)
	}
	if err := bench.CheckSettings(experiments, set); err != nil {
		return bench.Options{}, usageErrorf("--set: %w", err)
	}
	if f.out != "" {
		if err := report.CheckDir(f.out); err != nil {
			return bench.Options{}, fmt.Errorf("--out: %w", err)
		}
	}
	return bench.Options{Quick: f.quick, Set: set}, nil
}

// applyWire removes the setting wire, which every experiment has: the protocol of all devices, which the
// processes of the experiments inherit.
func applyWire(set bench.Settings) error {
	wire, given := set["wire"]
	if !given {
		return nil
	}
	if wire != string(rnic.RoCE) && wire != string(rnic.IWARP) {
		return fmt.Errorf("wire=%s: want %s or %s", wire, rnic.RoCE, rnic.IWARP)
	}
	delete(set, "wire")
	return os.Setenv(rnic.EnvWire, wire)
}

// sameOptions returns a function that returns o for every experiment.
func sameOptions(o bench.Options) func(*bench.Experiment) bench.Options {
	return func(*bench.Experiment) bench.Options { return o }
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "run NAME...",
		Short: "Run experiments and print their tables",
		Long:  "Runs the named experiments, or those with statements about a figure or paper: \"RCUD fig. 6a\".",
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, e := range a.registry.All() {
				names = append(names, e.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) == 0 {
				return usageErrorf("run: missing experiment name; `bench list` shows the names")
			}
			experiments, err := a.registry.Find(names...)
			if err != nil {
				return usageErrorf("%w", err)
			}
			o, err := f.parseOptions(experiments)
			if err != nil {
				return err
			}
			return a.runExperiments(c, experiments, o, f.out, asJSON)
		},
	}
	f.addFlags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line as figures are measured")
	return c
}

func (a *app) runExperiments(c *cobra.Command, experiments []*bench.Experiment, o bench.Options, out string, asJSON bool) error {
	machine := a.describeMachine()
	if asJSON {
		enc := json.NewEncoder(a.stdout)
		o.OnRow = func(r bench.Row) error { return enc.Encode(r) }
	}
	return a.runAll(c.Context(), experiments, sameOptions(o), newEstimate(experiments, o, out), func(res *bench.Result) error {
		var err error
		switch {
		case !asJSON:
			_, err = fmt.Fprintln(a.stdout, report.Text(res))
		case res.Err == nil:
			err = report.WriteVerdict(a.stdout, res)
		default:
			fmt.Fprintln(a.stderr, res.Err)
		}
		if err == nil && out != "" {
			err = report.Save(out, machine, res)
		}
		return err
	})
}
