package main

import (
	"slices"
	"strconv"

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

// withoutKernelDevice are the reasons of commands that do not run on a device of the kernel.
var withoutKernelDevice = map[string]string{
	"udaddy":  "its requests go through queue pair 1, which belongs to the kernel",
	"doctor":  "it checks softrnic; devinfo shows a device of the kernel",
	"run":     "it puts softrnic in the place of libibverbs, with which the program finds the kernel's devices",
	"env":     "it puts softrnic in the place of libibverbs, with which a program finds the kernel's devices",
	"mpirun":  "the programs that it starts open their devices themselves",
	"stat":    "it reads the counters of softrnic; rdma-statistic(8) reads those of the kernel",
	"top":     "it reads the counters of softrnic; rdma-statistic(8) reads those of the kernel",
	"history": "it reads the packets of softrnic",
	"capture": "it makes softrnic write its packets; use tcpdump(8)",
	"version": "it opens no device", "completion": "it opens no device", "help": "it opens no device",
}

// kernelDeviceReason returns the reason that c does not run on a device of the kernel, or "".
func kernelDeviceReason(c *cobra.Command) string {
	for ; c.HasParent(); c = c.Parent() {
		if reason := withoutKernelDevice[c.Name()]; reason != "" {
			return reason
		}
	}
	return ""
}

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
	if reason := kernelDeviceReason(c); c.Flags().Changed("device") && reason != "" {
		return usageErrorf("--device: %s does not run on a device of the kernel: %s", c.CommandPath(), reason)
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
		hide("device", kernelDeviceReason(c) != "")
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
