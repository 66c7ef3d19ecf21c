package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/dropin"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/rnic"
)

const runLong = `Runs a program that uses libibverbs or librdmacm, unmodified, on devices softrnic0, ... of
this process, and the programs that it starts. The machine needs no RDMA device, no kernel
module and no privilege. The program replaces softrnic, so signals and the exit status are
its own.

    softrnic run -- ibv_devinfo -v
    softrnic run -- ib_write_bw & sleep 1; softrnic run -- ib_write_bw localhost
    softrnic run --impair "loss 1% seed 7" -- ./program

softrnic preloads a library with the functions of rdma-core and sets variables of the
environment; softrnic env prints them for a shell. A program that is static, setuid or of
another architecture cannot be reached and is refused with the reason. softrnic stat,
history and capture see the program by its name or process number.`

// runFlags are the flags of run and env.
type runFlags struct {
	libraries string
	noCheck   bool
	settings  dropin.Settings
}

// deviceFlags adds the flags of the devices of a program.
func (o *runFlags) deviceFlags(f *pflag.FlagSet) {
	f.Var((*deviceCount)(&o.settings.Devices), "devices", "`number` of devices, 1 to 16 (default 1, env "+dropin.EnvDevices+")")
	f.StringVar(&o.settings.Capture, "capture", "", "write the packets to this `file` in pcapng format; other devices and processes of this\n"+
		"run append their process and device number to the name (env "+dropin.EnvCapture+")")
	f.BoolVar(&o.settings.Explain, "explain", false, "print the reason of each failed completion to stderr (env "+dropin.EnvExplain+"=1)")
	f.StringVar(&o.libraries, "libraries", "", "`directory` of the drop-in libraries (env "+dropin.EnvDir+")")
}

// maxDevices is the maximum number of devices of a program.
const maxDevices = 16

// A deviceCount is the flag value of a number of devices.
type deviceCount int

func (n *deviceCount) Set(s string) error {
	var v int
	if _, err := fmt.Sscanf(s+" ", "%d ", &v); err != nil || fmt.Sprint(v) != s || v < 1 || v > maxDevices {
		return fmt.Errorf("%q: want a number of devices from 1 to %d", s, maxDevices)
	}
	*n = deviceCount(v)
	return nil
}

func (*deviceCount) Type() string     { return "number" }
func (n *deviceCount) String() string { return "" }

func (a *app) dropinRunCommand() *cobra.Command {
	var o runFlags
	c := &cobra.Command{
		Use:   "run [--] PROGRAM [ARG...]",
		Short: "Run an unmodified program of libibverbs or librdmacm",
		Long:  runLong,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("%s needs a program, for example: %s -- ibv_devinfo", c.CommandPath(), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.runProgram(c, &o, args) },
	}
	o.deviceFlags(c.Flags())
	c.Flags().BoolVar(&o.noCheck, "no-check", false, "run the program even if softrnic cannot reach it, for the sake of its children")
	c.Flags().SetInterspersed(false) // the arguments of the program are not parsed
	return c
}

func (a *app) dropinEnvCommand() *cobra.Command {
	var o runFlags
	c := &cobra.Command{
		Use:   "env",
		Short: "Print the environment of unmodified programs, for eval in a shell",
		Long: "Prints the variables that softrnic run sets, as commands of a POSIX shell. All programs\n" +
			"that the shell starts afterwards use softrnic:\n\n" +
			"    eval \"$(softrnic env)\"\n" +
			"    ib_write_bw & sleep 1; ib_write_bw localhost",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.printEnv(c, &o) },
	}
	o.deviceFlags(c.Flags())
	return c
}

// An exitError is an error with an exit status.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// Exit statuses of a program that does not run, as of a shell and of env(1).
const (
	statusNotRun   = 126
	statusNotFound = 127
)

// prepare completes the settings and finds the libraries.
func (a *app) prepare(c *cobra.Command, o *runFlags) (dropin.Libraries, error) {
	if a.json {
		return dropin.Libraries{}, usageErrorf("--json: not supported by %s", c.CommandPath())
	}
	if _, err := a.deviceOptions(); err != nil { // the program would fail with them
		return dropin.Libraries{}, err
	}
	if err := a.checkBindable(); err != nil {
		return dropin.Libraries{}, err
	}
	o.settings.Addr, o.settings.Impair, o.settings.Wire = a.addr, a.impair, a.wire
	if o.settings.Capture != "" {
		path, err := filepath.Abs(o.settings.Capture)
		if err == nil {
			_, err = os.Stat(filepath.Dir(path))
		}
		if err != nil {
			return dropin.Libraries{}, usageErrorf("--capture: %w", err)
		}
		o.settings.Capture = path
	}
	finder := dropin.NewFinder(a.stderr)
	if o.libraries != "" {
		finder.Dir = o.libraries
	}
	return finder.Find(c.Context())
}

// runProgram replaces this process by a program. It returns only with an error.
func (a *app) runProgram(c *cobra.Command, o *runFlags, args []string) error {
	libs, err := a.prepare(c, o)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		status := statusNotRun
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
			status = statusNotFound
		}
		var file *fs.PathError
		if errors.As(err, &file) { // the text of err has the path twice
			err = file.Err
		}
		var search *exec.Error
		if errors.As(err, &search) {
			err = search.Err
		}
		return &exitError{status, fmt.Errorf("run: %s: %w", args[0], err)}
	}
	if !o.noCheck {
		if err := libs.Check(path); err != nil {
			return &exitError{statusNotRun, fmt.Errorf("run: %w", err)}
		}
	}
	if isOff() {
		fmt.Fprintf(a.stderr, "softrnic: warning: %s=off: the program uses the installed RDMA libraries\n", dropin.EnvMode)
	}
	if err := a.createCapture(o); err != nil {
		return err
	}
	err = dropin.Exec(path, args, libs.Environ(os.Environ(), path, o.settings))
	return &exitError{statusNotRun, fmt.Errorf("run: %w", err)}
}

// isOff reports whether the preloaded library leaves the program to the installed libraries.
func isOff() bool { return strings.EqualFold(os.Getenv(dropin.EnvMode), "off") }

// rocePort is the UDP port of RoCE v2, which peers of unmodified programs send to: these learn a GID without a port.
const rocePort = 4791

// checkBindable returns an error if no socket can have an address that the user has given, or no peer can reach its
// port. A program would find no device, and may exit with status 0.
func (a *app) checkBindable() error {
	from, text := flagOrEnv("--addr", a.addr, rnic.EnvAddr)
	if text == "" || isOff() {
		return nil
	}
	entries, err := hostaddr.Parse(text)
	if err != nil {
		return usageErrorf("%s: %w", from, err)
	}
	for _, e := range entries {
		if e.Ports && (rocePort < e.First || e.Last < rocePort) {
			return usageErrorf("%s: %s: programs of libibverbs know no other UDP port than %d", from, hostaddr.Join(entries), rocePort)
		}
	}
	for _, e := range entries {
		var addrs []netip.Addr
		if addrs, err = e.Addrs(); err != nil {
			continue
		}
		var l *net.UDPConn
		if l, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addrs[0], 0))); err == nil {
			return l.Close()
		}
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			err = fmt.Errorf("%v: no interface of this machine has that address", addrs[0])
		}
	}
	return usageErrorf("%s: %w", from, err)
}

// createCapture creates the file for packets, or empties that of an earlier run, so that the first
// device of the program writes to it.
func (a *app) createCapture(o *runFlags) error {
	if o.settings.Capture == "" || isOff() {
		return nil
	}
	if err := dropin.CreateCapture(o.settings.Capture); err != nil {
		return usageErrorf("--capture: %w", err)
	}
	return nil
}

// printEnv prints the commands of a shell.
func (a *app) printEnv(c *cobra.Command, o *runFlags) error {
	libs, err := a.prepare(c, o)
	if err == nil {
		err = a.createCapture(o)
	}
	if err != nil {
		return err
	}
	for _, v := range libs.Changes(os.Environ(), "", o.settings) {
		fmt.Fprintf(a.stdout, "export %s=%s\n", v.Name, quoteShell(v.Value))
	}
	if cmdline.IsTerminal(a.stdout) {
		fmt.Fprintf(a.stdout, "# run this in a shell: eval \"$(%s)\"\n", c.CommandPath())
	}
	return nil
}

// quoteShell quotes a word for a POSIX shell.
func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
