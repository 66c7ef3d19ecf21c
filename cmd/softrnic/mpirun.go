package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
	"github.com/softrnic/softrnic/cmd/internal/cpus"
	"github.com/softrnic/softrnic/cmd/internal/mpirun"
	"github.com/softrnic/softrnic/cmd/internal/mpirun/agent"
	"github.com/softrnic/softrnic/internal/spelling"
	"github.com/softrnic/softrnic/rnic"
)

// envNet is the variable of the transport of MPI ranks.
const envNet = "SOFTRNIC_MPI_NET"

// Variables of the deadlock reports of ranks.
const (
	envWatchdog     = "SOFTRNIC_MPI_WATCHDOG"
	envReportSignal = "SOFTRNIC_MPI_REPORT_SIGNAL"
)

const mpirunLong = `Runs N copies of a program, the ranks of a job, and is their process manager. MPI
programs of softrnic and programs linked with MPICH find each other by it. The program
is a file, or a Go package or .go file, which is built first. Several programs separated
by : are one job.

    softrnic mpirun -n 4 ./examples/mpi/ring
    softrnic mpirun -n 1 ./leader : -n 3 -x ROLE=worker ./worker
    softrnic mpirun --hosts node1,node2 --ppn 4 -n 8 ./ring

The default hosts are those of a Slurm, PBS, LSF or Grid Engine allocation, with a rank
for each task. Otherwise the number of ranks per host is not limited. When a rank fails,
all ranks and the processes that they have started are ended, and the first failure is
reported. The exit status is that of the first failed rank, 128 plus the number of its
signal, or 124 after --timeout.

SIGUSR1 and SIGUSR2 are forwarded to all ranks. At SIGUSR1 programs of softrnic report
which ranks wait for which, and where: kill -USR1 and the process id of mpirun.

Ranks on other hosts are started by ssh; softrnic must have the same path there. Their
adapters use the destination address of the ssh connection, unless --addr or
SOFTRNIC_ADDR is set, for example to the prefix 10.77.0.0/24. Options may have one dash,
as with mpiexec (-np 4, -hosts a,b). The equivalent names of Open MPI and Hydra are
accepted.`

// mpirunFlags are the parsed flags of mpirun.
type mpirunFlags struct {
	mpirun.Options
	agent                                  bool
	hosts, hostfile, launcher, remote, net string
	bind                                   string
	genv                                   []string
	timeout, grace, report, launch         timeFlag
}

func (a *app) mpirunCommand() *cobra.Command {
	c := &cobra.Command{
		Use:                "mpirun [-n N] PROGRAM [ARG...] [: [-n N] PROGRAM [ARG...]]...",
		Aliases:            []string{"mpiexec"},
		Short:              "Run the ranks of an MPI job, here or on other hosts",
		Long:               mpirunLong,
		DisableFlagParsing: true, // the arguments of ranks are not parsed
	}
	o := &mpirunFlags{grace: timeFlag(2 * time.Second)}
	f := c.Flags()
	f.StringVar(&o.hosts, "hosts", "", "`hosts` to run on, with the number of consecutive ranks: node1,node2:4")
	f.StringVarP(&o.hostfile, "hostfile", "f", "", "`file` with one host per line: node2:4 or node2 slots=4")
	f.IntVar(&o.PPN, "ppn", 0, "number of consecutive `ranks` on each host")
	f.StringVar(&o.bind, "bind-to", string(cpus.Auto), "`unit` that each rank is bound to: hwthread, core or none; auto is hwthread if the number of ranks is a multiple of the processors")
	f.StringArrayVar(&o.genv, "genv", nil, "`NAME=VALUE` in the environment of all programs; NAME alone copies the local value")
	f.BoolVarP(&o.Prefix, "prefix", "l", false, "prefix lines of output with the rank: [3]")
	f.StringVar(&o.Outfile, "outfile-pattern", "", "`file` for the output: %r is the rank, %h the host, %n its number, %p the number of the program")
	f.StringVar(&o.Errfile, "errfile-pattern", "", "`file` for the error output")
	f.Var(&o.timeout, "timeout", "end the job after this `time`: 30s, or a number of seconds")
	f.Var(&o.report, "report-after", "have rank 0 report the waits of all ranks when one has waited for this `time` (env "+envWatchdog+")")
	f.Var(&o.launch, "launch-timeout", "end the job if an agent does not connect within this `time` (default 30s)")
	f.Var(&o.grace, "grace", "`time` between SIGTERM and SIGKILL")
	f.StringVar(&o.net, "net", "", "`transport` of the ranks: rdma, ud, hybrid or tcp (env "+envNet+")")
	f.StringVar(&o.launcher, "launcher-exec", "", "`command` instead of ssh, run with the host and a command line")
	f.StringVar(&o.remote, "agent-exec", "", "`path` of softrnic on the hosts (default: the local path)")
	f.BoolVar(&o.Port, "pmi-port", false, "connect ranks to the process manager by TCP on their host, not by an inherited socket")
	f.BoolVar(&o.agent, "agent", false, "run as the agent of a launcher")
	f.BoolVar(&o.Oversubscribe, "oversubscribe", false, "run more ranks than a batch system has allocated")
	f.Bool("allow-run-as-root", false, "accepted, no effect")
	for _, name := range []string{"agent", "allow-run-as-root"} {
		f.MarkHidden(name)
	}
	o.Programs = []mpirun.Program{{}}
	programFlags(f, &o.Programs[0])
	f.SetNormalizeFunc(canonicalFlagName)
	f.SetInterspersed(false)
	c.RunE = func(c *cobra.Command, args []string) error {
		c.DisableFlagParsing = false
		if err := c.ParseFlags(doubleDashes(f, args)); err != nil {
			return c.FlagErrorFunc()(c, err)
		}
		if help, _ := f.GetBool("help"); help {
			return c.Help()
		}
		if err := a.checkDeviceFlags(); err != nil {
			return err
		}
		if o.agent {
			return agent.Run(c.InOrStdin(), a.stdout)
		}
		return a.runMPIJob(c, o)
	}
	return c
}

// programFlags adds the flags that apply to one program.
func programFlags(f *pflag.FlagSet, p *mpirun.Program) {
	f.VarP((*rankCount)(&p.N), "np", "n", "number of `ranks` of this program (default: 1, or that of the hosts)")
	f.StringArrayVarP(&p.Environ, "env", "x", nil, "`NAME=VALUE` in the environment of this program; NAME alone copies the local value")
	f.StringVar(&p.Dir, "wdir", "", "`directory` to run this program in")
}

// A rankCount is the flag value of a number of ranks. 0 stands for an unset flag and is refused.
type rankCount int

func (n *rankCount) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err == nil && v == 0 {
		err = errors.New("want at least 1 rank")
	}
	*n = rankCount(v)
	return err
}

func (*rankCount) Type() string     { return "int" }
func (n *rankCount) String() string { return "" }

// canonicalFlagName maps flag names of hydra and Open MPI.
func canonicalFlagName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "n":
		name = "np"
	case "host":
		name = "hosts"
	case "machinefile":
		name = "hostfile"
	case "npernode", "N":
		name = "ppn"
	case "prepend-rank", "tag-output":
		name = "prefix"
	case "wd":
		name = "wdir"
	}
	return pflag.NormalizedName(name)
}

// doubleDashes adds the second dash to long flags that hydra and Open MPI write with one, up to
// the program.
func doubleDashes(f *pflag.FlagSet, args []string) []string {
	args = slices.Clone(args)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if len(arg) < 2 || arg[0] != '-' || arg == "--" {
			break
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		flag := f.Lookup(name)
		if flag == nil && len(name) == 1 {
			flag = f.ShorthandLookup(name)
		}
		if len(name) > 1 && flag != nil || name == "N" {
			args[i] = "--" + strings.TrimLeft(arg, "-")
		}
		if flag != nil && flag.NoOptDefVal == "" && !hasValue {
			i++ // its value
		}
	}
	return args
}

// runMPIJob runs a job.
func (a *app) runMPIJob(c *cobra.Command, o *mpirunFlags) (err error) {
	if a.json {
		return usageErrorf("--json: not supported: the output is that of the ranks")
	}
	if err := o.parsePrograms(c); err != nil {
		return err
	}
	if err := o.parseHosts(); err != nil {
		return err
	}
	if o.Bind, err = cpus.ParseBinding(o.bind); err != nil {
		return usageErrorf("--bind-to: %w", err)
	}
	if transports := []string{"rdma", "ud", "hybrid", "tcp"}; o.net != "" && !slices.Contains(transports, strings.ToLower(o.net)) {
		return usageErrorf("--net: %q: want rdma, ud, hybrid or tcp%s", o.net, spelling.Hint(o.net, transports...))
	}
	if o.Environ, err = resolveEnviron(o.genv); err != nil {
		return err
	}
	if os.Getenv(envReportSignal) == "" && len(mpirun.ForwardedSignals) > 0 {
		o.Environ = append([]string{envReportSignal + "=USR1"}, o.Environ...)
	}
	for _, v := range []struct{ name, value string }{{envNet, o.net}, {envWatchdog, o.report.String()}, {rnic.EnvImpair, a.impair}, {rnic.EnvAddr, a.addr}, {rnic.EnvWire, a.wire}} {
		if v.value != "" {
			o.Environ = append(o.Environ, v.name+"="+v.value)
		}
	}
	o.Timeout, o.Grace, o.LaunchTimeout = time.Duration(o.timeout), time.Duration(o.grace), time.Duration(o.launch)
	o.Stdin, o.Stdout, o.Stderr = c.InOrStdin(), a.stdout, a.stderr
	o.Terminal = cmdline.IsTerminal(a.stdout) && cmdline.IsTerminal(a.stderr)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append(mpirun.ForwardedSignals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	defer signal.Stop(signals)
	o.Signals = signals
	err = mpirun.Run(context.WithoutCancel(c.Context()), o.Options) // signals carry more information than a context
	if invalid := (*mpirun.OptionError)(nil); errors.As(err, &invalid) {
		return usageErrorf("%w; see `%s --help`", err, c.CommandPath())
	}
	return err
}

// parsePrograms parses the arguments after the flags: programs with their own flags.
func (o *mpirunFlags) parsePrograms(c *cobra.Command) (err error) {
	rest := c.Flags().Args()
	for first := true; first || len(rest) > 0; first = false {
		p := &o.Programs[0]
		if !first {
			o.Programs = append(o.Programs, mpirun.Program{})
			p = &o.Programs[len(o.Programs)-1]
			f := pflag.NewFlagSet("program", pflag.ContinueOnError)
			programFlags(f, p)
			f.SetNormalizeFunc(canonicalFlagName)
			f.SetInterspersed(false)
			f.Usage = func() {}
			if err := f.Parse(doubleDashes(f, rest)); err != nil {
				return usageErrorf("%w; after a : the flags are -n, -x and --wdir", err)
			}
			rest = f.Args()
		}
		end := slices.Index(rest, ":")
		if end < 0 {
			end = len(rest)
		}
		p.Args = rest[:end:end]
		if p.Environ, err = resolveEnviron(p.Environ); err != nil {
			return err
		}
		if end == len(rest) {
			return nil
		}
		if rest = rest[end+1:]; len(rest) == 0 {
			return usageErrorf("no program after the last :")
		}
	}
	return nil
}

// parseHosts parses the hosts, or reads the allocation of a batch system.
func (o *mpirunFlags) parseHosts() (err error) {
	switch {
	case o.hosts != "" && o.hostfile != "":
		return usageErrorf("give either --hosts or --hostfile")
	case o.hosts != "":
		o.Hosts, err = mpirun.ParseHosts(o.hosts)
	case o.hostfile != "":
		var f *os.File
		if f, err = os.Open(o.hostfile); err == nil {
			o.Hosts, err = mpirun.ReadHosts(o.hostfile, f)
			f.Close()
		}
	default:
		o.Allocation, err = mpirun.ReadAllocation(os.Getenv)
	}
	if err != nil {
		return usageErrorf("%w", err)
	}
	o.Launch = strings.Fields(o.launcher)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Agent = []string{self, "mpirun", "--agent"}
	if o.remote != "" {
		o.Remote = []string{o.remote, "mpirun", "--agent"}
	}
	return nil
}

// resolveEnviron adds the launcher's value to names without one.
func resolveEnviron(list []string) ([]string, error) {
	list = slices.Clone(list)
	for i, v := range list {
		if strings.Contains(v, "=") {
			continue
		}
		value, ok := os.LookupEnv(v)
		if !ok {
			return nil, usageErrorf("%s is not set: want %s=VALUE", v, v)
		}
		list[i] = v + "=" + value
	}
	return list, nil
}

// A timeFlag is a duration that can be given in seconds, as with Open MPI.
type timeFlag time.Duration

func (s *timeFlag) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *timeFlag) Type() string { return "time" }

func (s *timeFlag) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	d := time.Duration(n * float64(time.Second))
	if err != nil {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("want a time such as 30s")
	}
	*s = timeFlag(d)
	return nil
}
