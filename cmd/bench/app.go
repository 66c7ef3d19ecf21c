package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/internal/cmdline"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/rnic"
)

// app is the command with its surroundings, so that tests can replace them.
type app struct {
	registry       *bench.Registry
	stdout, stderr io.Writer
	tourTime       time.Duration // after which the tour ends, come what may
	args           []string      // of the command line
}

// Exit statuses.
const (
	statusFailed = 1
	statusUsage  = 2
)

// runCommandLine runs the command line and returns the exit status.
func (a *app) runCommandLine(ctx context.Context, args []string) int {
	a.args = imbDashes(args)
	out := cmdline.NewOutput(a.stdout)
	a.stdout = out
	c := a.rootCommand()
	c.SetArgs(a.args)
	err := c.ExecuteContext(ctx)
	if lost := out.Err(); !errors.Is(err, lost) {
		err = errors.Join(err, lost)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(a.stderr, "bench:", err)
	if wrong := (*usageError)(nil); errors.As(err, &wrong) {
		return statusUsage
	}
	return cmdline.FailureStatus(ctx, statusFailed)
}

func (a *app) rootCommand() *cobra.Command {
	var tables bool
	root := &cobra.Command{
		Use:     "bench",
		Version: cmdline.ReadVersion().String(),
		Short:   "What the adapter does on this machine, beside what UDP itself does",
		Long: "Without a command: the tour, at most 60 s, with real processes on this machine, and one\n" +
			"screen of figures; with -v every figure and claim, in a table for each layer.",
		Args:          a.unknownCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return a.runTour(c.Context(), tables) },
	}
	root.Flags().BoolVarP(&tables, "verbose", "v", false, "every figure and claim of the tour, in a table for each layer")
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	var faults string
	root.PersistentFlags().StringVar(&faults, "impair", "", "faults of every adapter's link, for example \"loss 1% delay 2ms\"; bare UDP has none")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return prepareWorkers(faults) }
	root.AddCommand(a.listCommand(), a.runCommand(), a.reportCommand(), a.osuCommand(), a.imbCommand(), a.nasCommand(), a.agentCommand())
	return root
}

// prepareWorkers checks what the worker processes find in their environment,
// and puts the faults of --impair there.
func prepareWorkers(faults string) error {
	if _, err := impair.Parse(faults); err != nil {
		return usageErrorf("--impair: %w", err)
	}
	if env := os.Getenv(rnic.EnvImpair); faults == "" {
		if _, err := impair.Parse(env); err != nil {
			return usageErrorf("%s: %w", rnic.EnvImpair, err)
		}
	}
	if env := os.Getenv(rnic.EnvAddr); env != "" {
		if _, err := rnic.ParseAddrs(env); err != nil {
			return usageErrorf("%s: %w", rnic.EnvAddr, err)
		}
	}
	if faults == "" {
		return nil
	}
	return os.Setenv(rnic.EnvImpair, faults)
}

// describeMachine puts the machine's fingerprint on stderr and returns it.
func (a *app) describeMachine() env.Fingerprint {
	machine := env.Read()
	fmt.Fprintln(a.stderr, machine)
	return machine
}

// runAll runs the experiments one after the other and hands each result to
// done, that of a failed one too. A failure does not stop the others, but the
// end of ctx does. The error sums the failures up, which done has told of. Where there
// are several, stderr tells how many are done, and with an estimate how long the others
// take.
func (a *app) runAll(ctx context.Context, experiments []*bench.Experiment, options func(*bench.Experiment) bench.Options, left *estimate, done func(*bench.Result) error) error {
	var results []*bench.Result
	for i, e := range experiments {
		o := options(e)
		name := e.Name
		if len(experiments) > 1 {
			name = fmt.Sprintf("[%d/%d] %s", i+1, len(experiments), e.Name)
			if left != nil {
				fmt.Fprintf(a.stderr, "%s, %s\n", name, left)
			}
		}
		p := startProgress(a.stderr, name)
		o.Progress = p
		res, _ := bench.Execute(ctx, e, o)
		p.stopDisplay()
		results = append(results, res)
		if left != nil {
			left.addElapsed(res.Elapsed)
		}
		if err := done(res); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("stopped at %s: %w", e.Name, context.Cause(ctx))
		}
	}
	return summarizeFailures(results)
}

// summarizeFailures returns an error that names the experiments which failed, but for
// those that the end of the tour's time cut short.
func summarizeFailures(results []*bench.Result) error {
	var failed []string
	for _, res := range results {
		if res.Err != nil && !errors.Is(res.Err, errTourOver) {
			failed = append(failed, res.Experiment.Name)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d experiments failed: %s", len(failed), len(results), strings.Join(failed, ", "))
}
