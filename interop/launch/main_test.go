//go:build interop && linux

package launch

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// envInside is set in the process inside the namespaces.
const envInside = "SOFTRNIC_LAUNCH_INSIDE"

// hostname is the host name inside of the namespaces.
const hostname = "softrnic-launch"

// unavailable is the reason why no test can run, or "".
var unavailable string

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "rank" {
		os.Exit(runRank(os.Args[2]))
	}
	if os.Getenv(envInside) != "" {
		if err := enterNamespaces(); err != nil {
			fmt.Fprintln(os.Stderr, "launch: namespaces:", err)
			os.Exit(1)
		}
		flag.Parse()
		if err := flag.Set("test.parallel", "6"); err != nil { // jobs mostly wait
			fmt.Fprintln(os.Stderr, "launch:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if os.Geteuid() != 0 {
		unavailable = "needs root, for network namespaces and daemons"
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), envInside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS}
	runtime.LockOSThread() // whose exit status is that of the child
	err := cmd.Start()
	if err != nil { // a container without the right to create namespaces
		unavailable = "needs namespaces: " + err.Error()
		os.Exit(m.Run())
	}
	if err = cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		fmt.Fprintln(os.Stderr, "launch: tests inside the namespaces:", err)
		os.Exit(1)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// enterNamespaces prepares the namespaces: it mounts a /proc of their own processes, and an empty
// /run, where sshd needs a directory of its own.
func enterNamespaces() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, fs := range [][2]string{{"proc", "/proc"}, {"tmpfs", "/run"}} {
		if err := syscall.Mount(fs[0], fs[1], fs[0], 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", fs[1], err)
		}
	}
	if err := os.Mkdir("/run/sshd", 0o755); err != nil {
		return err
	}
	for _, name := range []string{"SOFTRNIC_ADDR", "SSH_CONNECTION"} {
		os.Unsetenv(name)
	}
	return syscall.Sethostname([]byte(hostname))
}

// requirePrograms skips a test unless it is inside and the programs are installed.
func requirePrograms(t *testing.T, packages string, programs ...string) {
	t.Helper()
	if unavailable != "" {
		t.Skip(unavailable)
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("there is no %s (Debian: packages %s)", p, packages)
		}
	}
}

// softrnic returns the path of the command, built once.
var softrnic = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "softrnic-launch-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "softrnic")
	out, err := exec.Command("go", "build", "-o", path, "github.com/softrnic/softrnic/cmd/softrnic").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// shell runs a command to its end and returns its output.
func shell(t *testing.T, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", strings.Join(words, " "), out)
	return string(out)
}

// startDaemon starts a program that runs until the test ends, with its output in a file.
func startDaemon(t *testing.T, log string, attr *syscall.SysProcAttr, words ...string) *exec.Cmd {
	t.Helper()
	f, err := os.Create(log)
	require.NoError(t, err)
	defer f.Close()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = f, f, attr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if b, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("%s:\n%s", strings.Join(words, " "), b)
		}
	})
	return cmd
}
