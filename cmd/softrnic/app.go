package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
	"github.com/softrnic/softrnic/cmd/internal/mpirun"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/internal/environment"
	"github.com/softrnic/softrnic/rnic"
)

// An app is the command with its streams and hooks, which tests can replace.
type app struct {
	stdout, stderr io.Writer
	options        rnic.Options // of every device that a command opens, before the flags

	// inspectMachine collects the facts for doctor.
	inspectMachine func(ctx context.Context, options rnic.Options) machineFacts

	// Flags of every command.
	addr, impair, wire, device string
	json                       bool
}

func newApp(stdout, stderr io.Writer) *app {
	return &app{stdout: stdout, stderr: stderr, inspectMachine: inspectMachine}
}

// Exit statuses.
const (
	statusFailed = 1
	statusUsage  = 2
)

// A usageError is a mistake in the command line or in the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// isUsageError reports whether err is a mistake in the command line or in the environment,
// including an invalid option that a tool reports.
func isUsageError(err error) bool {
	var mistake *usageError
	var invalid *option.Error
	return errors.As(err, &mistake) || errors.As(err, &invalid)
}

// runCommand runs the command line and returns the exit status.
func (a *app) runCommand(ctx context.Context, args []string) int {
	out := cmdline.NewOutput(a.stdout)
	a.stdout = out
	environment.WarnUnknown(func(text string) { fmt.Fprintln(a.stderr, "softrnic: warning:", text) })
	c := a.rootCommand()
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	if lost := out.Err(); !errors.Is(err, lost) {
		err = errors.Join(err, lost)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(a.stderr, "softrnic:", err)
	if isUsageError(err) {
		return statusUsage
	}
	if failed := (*mpirun.Failure)(nil); errors.As(err, &failed) {
		return failed.Status
	}
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.status
	}
	return cmdline.FailureStatus(ctx, statusFailed)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "softrnic",
		Version:       cmdline.ReadVersion().String(),
		Short:         "A RoCE v2 adapter in user space: inspect, test and use it",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },

		Example:           rootExample,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return errors.Join(checkFlagsApply(c), a.checkDeviceFlags()) },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{cmdline.FlagError(c, err)} })
	flags := root.PersistentFlags()
	flags.StringVar(&a.addr, "addr", "", "address of the device, for example 192.0.2.1 or [2001:db8::1]:4791, or the\n"+
		"first free one of a prefix (127.0.0.0/8), a range of ports (192.0.2.1:4791-4799) or a list with\n"+
		"commas (env "+rnic.EnvAddr+")")
	flags.StringVar(&a.device, "device", "", "`device` of the kernel to use instead of softrnic, for example uverbs:rxe0;\n"+
		"--addr selects one of its addresses")
	flags.StringVar(&a.impair, "impair", "", "faults to inject, for example \"loss 1% delay 2ms seed 7\" (env "+rnic.EnvImpair+")")
	flags.StringVar(&a.wire, "wire", "", "protocol of the device: roce, or iwarp (RDMA over TCP) (env "+rnic.EnvWire+")")
	flags.BoolVarP(&a.json, "json", "j", false, "write JSON")
	root.AddGroup(groups...)
	addGroup(root, "look", a.devinfoCommand(), a.doctorCommand(), a.statCommand(), a.topCommand(), a.historyCommand(), a.captureCommand())
	addGroup(root, "test", a.pingpongCommand(), a.perfCommand(), a.rpingCommand(), a.ucmatoseCommand(), a.udaddyCommand())
	addGroup(root, "run", a.dropinRunCommand(), a.dropinEnvCommand())
	addGroup(root, "use", a.sdpCommand())
	addGroup(root, "mpi", a.mpirunCommand())
	root.AddCommand(a.versionCommand())
	root.SetHelpFunc(filteredHelp(root.HelpFunc()))
	completeValues(root)
	return root
}

// unknownCommand accepts no arguments: a word here is an unknown command.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{cmdline.UnknownCommand(c, args[0])}
}

// noArgs accepts no arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%s takes no argument, got %q", c.CommandPath(), args[0])
	}
	return nil
}

// writeJSON writes one value, indented.
func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
