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

// envInside is the environment variable that holds the setup as JSON in the process inside the
// namespaces.
const envInside = "SOFTRNIC_LAB_INSIDE"

// A setup is the data that the outer process passes to the inner one.
type setup struct {
	Image *image
	Bin   string // folder of the programs built for the run
	Siw   string // file name of the kernel module siw, or "" because of NoSiw
	NoSiw string
}

// insideSetup is the setup of this process, or nil outside of the namespaces.
var insideSetup *setup

// unavailable is the reason why the lab is unavailable, or "".
var unavailable = "lab.Main was not called from TestMain"

// Main runs the tests, given as m.Run, next to the guest, and exits. If the lab is unavailable,
// it runs them in this process, where Need skips them. Call it from TestMain.
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

// missingPrerequisite describes a missing prerequisite of the lab, or returns "".
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

// namespaceAttr returns the process attributes for the namespaces in which the tests run.
func namespaceAttr() *syscall.SysProcAttr {
	return asRoot(&syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	})
}

// asRoot adds a user namespace to attr in which an unprivileged user is root.
func asRoot(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	return attr
}

// runInNamespaces prepares the image and the programs, and runs this test binary again in
// namespaces.
func runInNamespaces() (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bin, err := os.MkdirTemp("", "softrnic-interop-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	log := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "interop: "+format+"\n", args...) }
	img, err := buildImage(ctx, log)
	if err != nil {
		return 0, err
	}
	s := setup{Image: img, Bin: bin}
	if s.Siw, err = buildSiw(ctx, img.Release, log); err != nil {
		s.NoSiw = err.Error()
	}
	if err := buildProgram(ctx, bin, "interop/lab/agent"); err != nil {
		return 0, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), envInside+"="+string(text))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = namespaceAttr()
	runtime.LockOSThread() // Pdeathsig applies to the thread that started the process
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

// buildProgram builds a program of this module without cgo, because the guest has another libc.
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

// Need returns the guest, which all tests of the binary share, in its initial state: without
// faults and with LargeMTU. It skips the test with the reason if the lab is unavailable, and
// fails it if the guest does not boot.
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

// Versions returns the package versions of the guest, for example "perftest 4.5+0.17-1", or nil
// without a lab.
func Versions() []string {
	if insideSetup == nil {
		return nil
	}
	return insideSetup.Image.Versions
}

// binaries are the programs built so far, by name.
var binaries sync.Map // string to func() error

// Binary returns the path of a program of this module, such as softrnic for cmd/softrnic, built
// for the guest and for the host.
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

// TestBinary returns the path of the tests of a package of this module, such as verbs/uverbs, built
// for the guest with the tag interop.
func TestBinary(t testing.TB, path string) string {
	t.Helper()
	if unavailable != "" {
		t.Skip("no lab: " + unavailable)
	}
	name := filepath.Join(insideSetup.Bin, strings.ReplaceAll(path, "/", "-")+".test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-tags", "interop", "-o", name, "github.com/softrnic/softrnic/"+path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return name
}
