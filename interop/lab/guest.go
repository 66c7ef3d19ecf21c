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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/interop/lab/control"
)

const (
	qemu        = "qemu-system-x86_64"
	controlPort = 22
	bootTime    = 2 * time.Minute // at most; some seconds where nothing else runs

	// Device is the adapter of the guest, with one port.
	Device = "rxe0"

	// envAccel is QEMU's accelerator instead of the emulation that works
	// everywhere: "kvm" makes the guest a hundred times faster where nested
	// virtualization is real, and hangs where it only seems to be there.
	envAccel = "SOFTRNIC_LAB_ACCEL"
)

// Guest is a running guest.
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

// start starts QEMU with the cables and the image, completed with the agent.
// Nothing of this has a name in a file system.
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

// Close ends the guest at once.
func (g *Guest) Close() {
	g.qemu.Process.Kill()
	<-g.exited
}

// Start runs a program in the guest; see control.Client.Start.
func (g *Guest) Start(ctx context.Context, stdout, stderr io.Writer, args ...string) (*control.Process, error) {
	return g.control.Start(ctx, control.Command{Args: args}, stdout, stderr)
}

// Output runs a program in the guest to its end and returns what it printed.
// The error has what it printed to stderr.
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

// withConsole adds the console if the guest is no more.
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

// ControlAddr is where a server in the guest is reached by the network that no
// fault touches.
func (g *Guest) ControlAddr(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(controlGuest, port)
}

// Console is what the kernel has printed lately.
func (g *Guest) Console() string { return g.console.String() }

// GIDIndex is the entry of the guest's GID table for an address of it.
func (g *Guest) GIDIndex(a netip.Addr) int { return g.gids[a] }

// readGIDs waits for both addresses to be in the GID table.
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

// parseGIDs reads what head(1) shows of the files of a GID table.
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

// buildInitrd returns the initial file system: the image and behind it, as the
// kernel allows, what is this run's own.
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
		return archiveFiles(f, map[string][]byte{
			"lab/agent": agent, "lab/init": initScript, "lab/faults": faultsScript,
			"lab/modules": []byte(strings.Join(guestModules, "\n") + "\n"),
		})
	}
	if err := write(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// console keeps the last lines of the serial line, and looks for the agent's
// verdict in them.
type console struct {
	verdict chan error // one
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
	told := false
	for s := bufio.NewScanner(r); s.Scan(); {
		line := strings.TrimRight(s.Text(), "\r")
		c.mu.Lock()
		c.lines = append(c.lines, line)
		if len(c.lines) > consoleLines {
			c.lines = c.lines[1:]
		}
		c.mu.Unlock()
		failed := strings.Contains(line, "LAB-FAILED")
		if (failed || strings.Contains(line, "LAB-READY")) && !told {
			told = true
			var err error
			if failed {
				err = fmt.Errorf("its init said %q", line)
			}
			c.verdict <- err
		}
	}
	io.Copy(io.Discard, r) // a line too long for a Scanner must not stop the guest
}

func (c *console) Write(b []byte) (int, error) { return c.w.Write(b) }

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// sharedVM is the one guest of the test binary.
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
