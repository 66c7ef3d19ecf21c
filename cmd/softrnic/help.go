package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
)

// The groups of commands in the help.
var groups = []*cobra.Group{
	{ID: "look", Title: "Inspect this machine and running processes:"},
	{ID: "test", Title: "Test against softrnic or the original program of this name:"},
	{ID: "run", Title: "Run unmodified programs of libibverbs and librdmacm:"},
	{ID: "use", Title: "Sockets:"},
	{ID: "mpi", Title: "Run MPI:"},
}

const rootExample = `  softrnic doctor                                  # check this machine
  softrnic perf write_bw & sleep 1; softrnic perf write_bw localhost
  softrnic run -- ibv_devinfo                      # an unmodified program of libibverbs
  SOFTRNIC_DEBUG=auto ./program & softrnic stat    # show its counters`

// addGroup adds commands to a group of the root command.
func addGroup(root *cobra.Command, id string, list ...*cobra.Command) {
	for _, c := range list {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// commandsWithoutDevice are the commands that open no device: --addr and --impair have no effect
// there.
var commandsWithoutDevice = []string{"stat", "top", "history", "capture", "version", "completion", "help"}

// commandsWithKernelDevice are the commands that run on a device of the kernel. Others need a
// connection manager or the inside of softrnic.
var commandsWithKernelDevice = []string{"devinfo", "pingpong", "perf"}

// commandsWithoutJSON are the commands with the output of another program. They refuse --json with
// the reason.
var commandsWithoutJSON = []string{"rping", "ucmatose", "udaddy", "cat", "mpirun", "run", "env", "completion", "help"}

// opensDevice reports whether c or one of its subcommands may open a device.
func opensDevice(c *cobra.Command) bool { return !isWithin(c, commandsWithoutDevice) }

// isWithin reports whether c or a command above it has one of the names.
func isWithin(c *cobra.Command, names []string) bool {
	for ; c.HasParent(); c = c.Parent() {
		if slices.Contains(names, c.Name()) {
			return true
		}
	}
	return false
}

// checkFlagsApply refuses the flags of a device for a command that opens none.
func checkFlagsApply(c *cobra.Command) error {
	for _, name := range []string{"addr", "impair", "wire"} {
		if c.Flags().Changed(name) && !opensDevice(c) {
			return usageErrorf("--%s: %s opens no device", name, c.CommandPath())
		}
	}
	if c.Flags().Changed("device") && !isWithin(c, commandsWithKernelDevice) {
		return usageErrorf("--device: %s does not run on a device of the kernel: only %s do, which need no connection manager", c.CommandPath(), strings.Join(commandsWithKernelDevice, ", "))
	}
	return nil
}

// filteredHelp writes the help of a command without the global flags that have no effect on it.
func filteredHelp(standard func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(c *cobra.Command, args []string) {
		hide := func(name string, hidden bool) {
			if f := c.Root().PersistentFlags().Lookup(name); f != nil {
				f.Hidden = hidden
			}
		}
		hide("addr", !opensDevice(c))
		hide("impair", !opensDevice(c))
		hide("wire", !opensDevice(c))
		hide("device", c.HasParent() && !isWithin(c, commandsWithKernelDevice))
		hide("json", isWithin(c, commandsWithoutJSON))
		standard(c, args)
	}
}

// flagValues are the values for shell completion, by flag.
var flagValues = map[string][]cobra.Completion{
	"mtu":        {"256", "512", "1024", "2048", "4096"},
	"connection": {"RC", "UC", "UD"},
	"format":     {"name", "ip", "ipv6"},
}

// completeValues registers the completion of the values of flags with c and its subcommands.
func completeValues(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch values, known := flagValues[f.Name]; {
		case known:
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		case f.Name == "of":
			_ = c.RegisterFlagCompletionFunc(f.Name, completeProcesses)
		}
	})
	for _, sub := range c.Commands() {
		completeValues(sub)
	}
}

// completeProcesses completes the value of --of: the processes with a debug endpoint.
func completeProcesses(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	peers, err := debugclient.Discover(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list := make([]cobra.Completion, len(peers))
	for i, p := range peers {
		list[i] = cobra.CompletionWithDesc(strconv.Itoa(p.PID), p.Report.Device.Name)
	}
	return slices.Compact(list), cobra.ShellCompDirectiveNoFileComp
}
