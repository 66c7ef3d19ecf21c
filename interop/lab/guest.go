//go:build linux

package lab

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/interop/lab/control"
)

const (
	qemu        = "qemu-system-x86_64"
	controlPort = 22
	bootTime    = 2 * time.Minute // upper bound; a few seconds on an idle machine

	// Device is the name of the guest's adapter, which has one port.
	Device = "rxe0"

	// envAccel selects QEMU's accelerator. The default is emulation, which works everywhere.
	// "kvm" makes the guest about a hundred times faster with working nested virtualization, and
	// hangs without.
	envAccel = "SOFTRNIC_LAB_ACCEL"
)

// A Guest is a running virtual machine.
type Guest struct {
	image   *image
	qemu    *exec.Cmd
	console *console
	control control.Client
	exited  chan struct{}
	gids    map[netip.Addr]int
	mtu     int
}

// bootGuest starts QEMU and waits for the agent.
func bootGuest(ctx context.Context, s *setup) (*Guest, error) {
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	g := &Guest{
		image: s.Image, console: newConsole(), exited: make(chan struct{}), mtu: LargeMTU,
		control: control.Client{Addr: netip.AddrPortFrom(controlGuest, controlPort).String()},
	}
	if err := g.start(s); err != nil {
		return nil, fmt.Errorf("start the guest: %w", err)
	}
	fail := func(err error) (*Guest, error) {
		g.Close()
		return nil, fmt.Errorf("the guest does not come up: %w; its console:\n%s", err, g.console)
	}
	select {
	case err := <-g.console.verdict:
		if err != nil {
			return fail(err)
		}
	case <-g.exited:
		return fail(fmt.Errorf("QEMU ended: %v", g.qemu.ProcessState))
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	if err := g.readGIDs(ctx); err != nil {
		return fail(err)
	}
	return g, nil
}

// start starts QEMU with the TAP devices and the image plus the agent. It creates no files.
func (g *Guest) start(s *setup) error {
	initrd, err := buildInitrd(s)
	if err != nil {
		return err
	}
	defer initrd.Close()
	files := []*os.File{initrd}
	for _, name := range []string{dataTap, controlTap} {
		tap, err := openTap(name)
		if err != nil {
			return err
		}
		defer tap.Close()
		files = append(files, tap)
	}
	accel := os.Getenv(envAccel)
	if accel == "" {
		accel = "tcg,thread=multi"
	}
	g.qemu = exec.Command(qemu, "-accel", accel, "-cpu", "max", "-smp", "2", "-m", "1024",
		"-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", s.Image.Kernel, "-initrd", "/dev/fd/3",
		"-append", fmt.Sprintf("console=ttyS0 quiet panic=-1 mitigations=off rdinit=/lab/init "+
			"LAB_CONTROL=%v/24 LAB_PORT=%d LAB_IPV4=%v/24 LAB_IPV6=%v/64", controlGuest, controlPort, GuestIPv4, GuestIPv6),
		"-netdev", "tap,id=data,fd=4", "-device", fmt.Sprintf("virtio-net-pci,netdev=data,host_mtu=%d,romfile=", LargeMTU),
		"-netdev", "tap,id=control,fd=5", "-device", "virtio-net-pci,netdev=control,romfile=")
	g.qemu.ExtraFiles = files
	g.qemu.Stdout, g.qemu.Stderr = g.console, g.console
	if err := g.qemu.Start(); err != nil {
		return err
	}
	go func() {
		g.qemu.Wait()
		close(g.exited)
	}()
	return nil
}

// Close kills the guest.
func (g *Guest) Close() {
	g.qemu.Process.Kill()
	<-g.exited
}

// Start runs a program in the guest; see control.Client.Start.
func (g *Guest) Start(ctx context.Context, stdout, stderr io.Writer, args ...string) (*control.Process, error) {
	return g.control.Start(ctx, control.Command{Args: args}, stdout, stderr)
}

// Output runs a program in the guest and returns its stdout. The error includes its stderr.
func (g *Guest) Output(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	p, err := g.Start(ctx, &stdout, &stderr, args...)
	if err != nil {
		return "", g.withConsole(err)
	}
	if err := p.Wait(); err != nil {
		return stdout.String(), g.withConsole(fmt.Errorf("in the guest: %w: %s", err, strings.TrimSpace(stderr.String()+stdout.String())))
	}
	return stdout.String(), nil
}

// withConsole adds the console output to err if the guest has exited.
func (g *Guest) withConsole(err error) error {
	select {
	case <-g.exited:
		return fmt.Errorf("%w; the guest is gone, its console:\n%s", err, g.console)
	default:
		return err
	}
}

// WriteFile writes an executable file in the guest.
func (g *Guest) WriteFile(ctx context.Context, path string, data []byte) error {
	return g.control.WriteFile(ctx, control.File{Path: path, Mode: 0o755, Data: data})
}

// ControlAddr returns the address of a server in the guest on the control network.
func (g *Guest) ControlAddr(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(controlGuest, port)
}

// GIDIndex returns the index of an address in the guest's GID table.
func (g *Guest) GIDIndex(a netip.Addr) int { return g.gids[a] }

// readGIDs waits until the GID table contains both addresses.
func (g *Guest) readGIDs(ctx context.Context) error {
	for ctx.Err() == nil {
		out, err := g.Output(ctx, "sh", "-c", "cd /sys/class/infiniband/"+Device+"/ports/1/gids && head -n 1 * | cat")
		if err != nil {
			return err
		}
		g.gids = parseGIDs(out)
		_, has4 := g.gids[GuestIPv4]
		_, has6 := g.gids[GuestIPv6]
		if has4 && has6 {
			return nil
		}
	}
	return fmt.Errorf("%s lacks the GIDs of its addresses: %w", Device, ctx.Err())
}

// parseGIDs parses the output of head(1) for the files of a GID table.
func parseGIDs(text string) map[netip.Addr]int {
	gids := make(map[netip.Addr]int)
	index := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "==> "); ok {
			index, _ = strconv.Atoi(strings.TrimSuffix(name, " <=="))
		} else if a, err := netip.ParseAddr(line); err == nil && !a.IsUnspecified() {
			gids[a.Unmap()] = index
		}
	}
	return gids
}

// buildInitrd returns the initial RAM file system: the image, followed by an archive with the
// files of this run, as the kernel allows.
func buildInitrd(s *setup) (*os.File, error) {
	agent, err := os.ReadFile(filepath.Join(s.Bin, "agent"))
	if err != nil {
		return nil, err
	}
	f, err := memoryFile("initrd")
	if err != nil {
		return nil, err
	}
	write := func() error {
		root, err := os.Open(s.Image.Root)
		if err != nil {
			return err
		}
		defer root.Close()
		if _, err := io.Copy(f, root); err != nil {
			return err
		}
		files := map[string][]byte{
			"lab/agent": agent, "lab/init": initScript, "lab/faults": faultsScript,
			"lab/modules": []byte(strings.Join(guestModules, "\n") + "\n"),
		}
		if s.Siw != "" {
			if files["lab/siw.ko"], err = os.ReadFile(s.Siw); err != nil {
				return err
			}
		}
		return archiveFiles(f, files)
	}
	if err := write(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// A console keeps the last lines of the serial console and reports the agent's status line.
type console struct {
	verdict chan error // capacity 1
	w       *io.PipeWriter

	mu    sync.Mutex
	lines []string
}

const consoleLines = 200

func newConsole() *console {
	r, w := io.Pipe()
	c := &console{verdict: make(chan error, 1), w: w}
	go c.readLines(r)
	return c
}

func (c *console) readLines(r io.Reader) {
	reported := false
	for s := bufio.NewScanner(r); s.Scan(); {
		line := strings.TrimRight(s.Text(), "\r")
		c.mu.Lock()
		c.lines = append(c.lines, line)
		if len(c.lines) > consoleLines {
			c.lines = c.lines[1:]
		}
		c.mu.Unlock()
		failed := strings.Contains(line, "LAB-FAILED")
		if (failed || strings.Contains(line, "LAB-READY")) && !reported {
			reported = true
			var err error
			if failed {
				err = fmt.Errorf("its init printed %q", line)
			}
			c.verdict <- err
		}
	}
	io.Copy(io.Discard, r) // keep reading after a line too long for the Scanner, so that the guest does not block
}

func (c *console) Write(b []byte) (int, error) { return c.w.Write(b) }

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// sharedVM is the only guest of the test binary.
var sharedVM sharedGuest

type sharedGuest struct {
	once  sync.Once
	guest *Guest
	err   error
}

func (s *sharedGuest) ensureBooted() (*Guest, error) {
	s.once.Do(func() { s.guest, s.err = bootGuest(context.Background(), insideSetup) })
	return s.guest, s.err
}

func (s *sharedGuest) close() {
	if s.guest != nil {
		s.guest.Close()
	}
}

// WaitListen waits until a program in the guest listens on a TCP port.
func (g *Guest) WaitListen(ctx context.Context, port uint16) error {
	_, err := g.Output(ctx, "sh", "-c", fmt.Sprintf("until cat /proc/net/tcp /proc/net/tcp6 | grep -q %q; do usleep 20000; done", listenPattern(port)))
	return err
}

// WaitListenCM waits until a program in the guest listens for RDMA-CM connections.
func (g *Guest) WaitListenCM(ctx context.Context) error {
	_, err := g.Output(ctx, "sh", "-c", "until rdma resource show cm_id | grep -q LISTEN; do usleep 20000; done")
	return err
}

// WaitListen waits until a program on the host listens on a TCP port.
func WaitListen(ctx context.Context, port uint16) error {
	want := regexp.MustCompile(listenPattern(port))
	for {
		for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			if text, err := os.ReadFile(path); err == nil && want.Match(text) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no listener on TCP port %d: %w", port, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// listenPattern matches a line of /proc/net/tcp with local address, remote address and the state
// LISTEN.
func listenPattern(port uint16) string { return fmt.Sprintf(":%04X [0-9A-F]*:0000 0A", port) }

// memoryFile returns an empty anonymous file (memfd_create(2)).
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
