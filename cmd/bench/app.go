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
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/cmd/internal/cmdline"
	"github.com/softrnic/softrnic/internal/environment"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/rnic"
)

// An app is the command with its registry and streams, which tests can replace.
type app struct {
	registry       *bench.Registry
	stdout, stderr io.Writer
	tourTime       time.Duration // maximum duration of the tour
	saveDir        string        // default directory of the files of the tour and of report
	args           []string      // command-line arguments
}

// Exit statuses.
const (
	statusFailed = 1
	statusUsage  = 2
)

// runCommandLine runs the command line and returns the exit status.
func (a *app) runCommandLine(ctx context.Context, args []string) int {
	environment.WarnUnknown(func(text string) { fmt.Fprintln(a.stderr, "bench: warning:", text) })
	a.args = imbDashes(args)
	out := cmdline.NewOutput(a.stdout)
	a.stdout = out
	c := a.rootCommand()
	c.SetArgs(a.args)
	err := c.ExecuteContext(ctx)
	if writeErr := out.Err(); !errors.Is(err, writeErr) {
		err = errors.Join(err, writeErr)
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
	var verbose bool
	var out string
	root := &cobra.Command{
		Use:     "bench",
		Version: cmdline.ReadVersion().String(),
		Short:   "Measure the adapter on this machine, with plain UDP as the baseline",
		Long: "Without a command, bench runs the tour: at most 60 s, with real processes on this machine,\n" +
			"and one screen of figures. All figures are written into a file, and printed with -v.",
		Args:          a.unknownCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return a.runTour(c.Context(), out, verbose) },
	}
	root.Flags().BoolVarP(&verbose, "verbose", "v", false, "print all figures of the tour")
	root.Flags().StringVar(&out, "out", a.saveDir, "write all figures of the tour into `DIR`/"+tourFile)
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(a.flagError)
	var impairment string
	root.PersistentFlags().StringVar(&impairment, "impair", "", "impairment of the links of all adapters, for example \"loss 1% delay 2ms\"; plain UDP has none")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return prepareWorkers(impairment) }
	root.AddCommand(a.listCommand(), a.runCommand(), a.reportCommand(), a.recordCommand(), a.osuCommand(), a.imbCommand(), a.nasCommand(), a.agentCommand())
	return root
}

// prepareWorkers checks the environment variables of the worker processes, and sets the
// impairment of --impair.
func prepareWorkers(impairment string) error {
	if _, err := impair.Parse(impairment); err != nil {
		return usageErrorf("--impair: %w", err)
	}
	if env := os.Getenv(rnic.EnvImpair); impairment == "" {
		if _, err := impair.Parse(env); err != nil {
			return usageErrorf("%s: %w", rnic.EnvImpair, err)
		}
	}
	if env := os.Getenv(rnic.EnvAddr); env != "" {
		if _, err := hostaddr.Parse(env); err != nil {
			return usageErrorf("%s: %w", rnic.EnvAddr, err)
		}
	}
	if impairment == "" {
		return nil
	}
	return os.Setenv(rnic.EnvImpair, impairment)
}

// describeMachine writes the facts about the machine to stderr and returns them.
func (a *app) describeMachine() env.Fingerprint {
	machine := env.Read()
	fmt.Fprintln(a.stderr, machine)
	return machine
}

// runAll runs the experiments one after the other and passes each result to done, including
// failed ones. A failure does not stop the others, but the end of ctx does. The returned error
// names the failed experiments, whose errors done has reported. With several experiments,
// stderr shows the progress, and the remaining time if left is not nil.
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
			return fmt.Errorf("interrupted at %s: %w", e.Name, context.Cause(ctx))
		}
	}
	return summarizeFailures(results)
}

// summarizeFailures returns an error that names the failed experiments, except for those that
// the end of the tour interrupted.
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

// A usageError is an error in the command line or in the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// unknownCommand rejects all arguments of the root command, with a hint for names of
// experiments.
func (a *app) unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	switch found, err := a.registry.Find(args[0]); {
	case err == nil && len(found) == 1 && found[0].Name == args[0]:
		return usageErrorf("%q is an experiment: `bench run %[1]s`", args[0])
	case err == nil:
		return usageErrorf("%q is a source of experiments: `bench run %[1]q`", args[0])
	}
	if cmdline.NearestCommand(c, args[0]) == nil {
		if name := a.registry.Nearest(args[0]); name != "" {
			return usageErrorf("unknown command %q; did you mean `bench run %s`?", args[0], name)
		}
	}
	return &usageError{cmdline.UnknownCommand(c, args[0])}
}

// noSubcommandArgs rejects unknown subcommands of a command.
func noSubcommandArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{cmdline.UnknownCommand(c, args[0])}
}

// noArgs rejects all arguments of a command.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%s: unexpected argument %q", c.CommandPath(), args[0])
	}
	return nil
}

// flagError adds a hint to the error of an unknown flag that belongs to another command.
func (a *app) flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); len(words) > 0 && !c.HasParent() {
		return a.unknownCommand(c, words)
	}
	if no := (*pflag.NotExistError)(nil); errors.As(err, &no) {
		var owners []string
		for _, sub := range c.Commands() {
			if sub.Flags().Lookup(no.GetSpecifiedName()) != nil {
				owners = append(owners, "`"+sub.CommandPath()+"`")
			}
		}
		if len(owners) > 0 {
			return usageErrorf("%w; the flag belongs to %s", err, strings.Join(owners, " and "))
		}
	}
	return &usageError{cmdline.FlagError(c, err)}
}
