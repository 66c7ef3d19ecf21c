//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// envInside is set in the process inside the namespaces, to its setup as JSON.
const envInside = "SOFTRNIC_LAB_INSIDE"

// setup is what the process outside hands to the one inside.
type setup struct {
	Image *image
	Bin   string // folder for the programs built for the run
}

// insideSetup is the setup of this process, if it is the one inside.
var insideSetup *setup

// unavailable is why there is no lab; "" if there is one.
var unavailable = "lab.Main was not called from TestMain"

// Main is a test binary's main function: it runs the tests, given as m.Run,
// beside the guest, or where that cannot be, here, where Need skips them. It
// does not return.
func Main(run func() int) {
	if text := os.Getenv(envInside); text != "" {
		os.Exit(runInside(text, run))
	}
	if unavailable = missingPrerequisite(); unavailable != "" {
		fmt.Fprintln(os.Stderr, "interop: every test is skipped:", unavailable)
		os.Exit(run())
	}
	code, err := runInNamespaces()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// missingPrerequisite says what the lab needs and does not find.
func missingPrerequisite() string {
	if runtime.GOARCH != "amd64" {
		return "the guest is built for amd64, this is " + runtime.GOARCH
	}
	for _, tool := range []struct{ name, pkg string }{
		{"apt-get", "apt, so Debian or a relative of it"}, {"dpkg-deb", "dpkg"}, {"ip", "iproute2"}, {qemu, "qemu-system-x86"},
	} {
		if _, err := exec.LookPath(tool.name); err != nil {
			return fmt.Sprintf("there is no %s (package %s)", tool.name, tool.pkg)
		}
	}
	tun, err := os.OpenFile(tunDevice, os.O_RDWR, 0)
	if err != nil {
		return "no virtual cable: " + err.Error()
	}
	tun.Close()
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = namespaceAttr()
	if err := probe.Run(); err != nil {
		return "no root, and no unprivileged user namespaces either: " + err.Error()
	}
	return ""
}

// namespaceAttr are those in which the tests run.
func namespaceAttr() *syscall.SysProcAttr {
	return asRoot(&syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	})
}

// asRoot makes a user who is not root so, in a user namespace.
func asRoot(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	return attr
}

// runInNamespaces prepares everything that needs the world outside, and runs this test
// binary again inside.
func runInNamespaces() (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bin, err := os.MkdirTemp("", "softrnic-interop-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	img, err := buildImage(ctx, func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "interop: "+format+"\n", args...)
	})
	if err != nil {
		return 0, err
	}
	if err := buildProgram(ctx, bin, "interop/lab/agent"); err != nil {
		return 0, err
	}
	text, err := json.Marshal(setup{Image: img, Bin: bin})
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), envInside+"="+string(text))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = namespaceAttr()
	runtime.LockOSThread() // the kernel watches the thread that started it
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })()
	err = cmd.Wait()
	if state := cmd.ProcessState; state != nil && state.Exited() {
		return state.ExitCode(), nil
	}
	return 0, fmt.Errorf("the tests inside the lab: %w", err)
}

// buildProgram builds a program of this module into a folder, such that it runs in the
// guest, too, which has another libc.
func buildProgram(ctx context.Context, bin, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", filepath.Join(bin, filepath.Base(path)), "github.com/softrnic/softrnic/"+path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

func runInside(text string, run func() int) int {
	os.Unsetenv(envInside)
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	if err := createCables(); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	insideSetup, unavailable = &s, ""
	defer sharedVM.close()
	return run()
}

// Need returns the guest, which all tests of the binary share, as it was when
// booted: without faults, with the large MTU. Where there can be none, the test
// is skipped with the reason; where it does not boot, the test fails.
func Need(t testing.TB) *Guest {
	t.Helper()
	if unavailable != "" {
		t.Skip("no lab: " + unavailable)
	}
	g, err := sharedVM.ensureBooted()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Versions are the packages of the guest, "perftest 4.5+0.17-1", nil where
// there is no lab.
func Versions() []string {
	if insideSetup == nil {
		return nil
	}
	return insideSetup.Image.Versions
}

// binaries are the programs built so far, by name.
var binaries sync.Map // string to func() error

// Binary is the path of a program of this module, such as softrnic for
// cmd/softrnic, built for the guest and for this side.
func Binary(t testing.TB, name string) string {
	t.Helper()
	if unavailable != "" {
		t.Skip("no lab: " + unavailable)
	}
	once, _ := binaries.LoadOrStore(name, sync.OnceValue(func() error {
		return buildProgram(context.Background(), insideSetup.Bin, "cmd/"+name)
	}))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(insideSetup.Bin, name)
}
