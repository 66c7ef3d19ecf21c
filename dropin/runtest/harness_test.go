// Package runtest runs unmodified programs by softrnic run: those of rdma-core, perftest, UCX and Open MPI where they are
// installed, and the example for continuous integration.
package runtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// envLibraries names a directory with built libraries, which the tests use instead of building them.
const envLibraries = "DROPIN_TEST_LIBRARIES"

// workDir is the directory of the libraries and of the command, removed at the end.
var workDir string

func TestMain(m *testing.M) {
	status := func() int {
		var err error
		if workDir, err = os.MkdirTemp("", "runtest-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(workDir)
		return m.Run()
	}()
	os.Exit(status)
}

// A build is the command softrnic, which has no cgo and so is static, and the directory of the libraries.
type build struct{ softrnic, libraries string }

var buildAll = sync.OnceValues(func() (build, error) {
	b := build{filepath.Join(workDir, "softrnic"), os.Getenv(envLibraries)}
	command := exec.Command("go", "build", "-o", b.softrnic, "./cmd/softrnic")
	command.Dir, command.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	if err == nil && b.libraries == "" {
		b.libraries = workDir
		out, err = exec.Command("../build.sh", workDir).CombinedOutput()
	}
	if err != nil {
		err = fmt.Errorf("build: %w\n%s", err, out)
	}
	return b, err
})

// needBuild builds the command and the libraries, once, or skips the test where that is not possible.
func needBuild(t *testing.T) build {
	t.Helper()
	needPrograms(t, "gcc")
	for _, header := range []string{"/usr/include/infiniband/verbs.h", "/usr/include/rdma/rdma_cma.h"} {
		if _, err := os.Stat(header); err != nil {
			t.Skip("apt-get install libibverbs-dev librdmacm-dev: ", err)
		}
	}
	b, err := buildAll()
	require.NoError(t, err)
	return b
}

// needPrograms skips a test unless all programs are installed.
func needPrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("not installed: " + name)
		}
	}
}

// A process is a started program.
type process struct {
	cmd    *exec.Cmd
	out    bytes.Buffer // stdout and stderr
	cancel context.CancelFunc
	ctx    context.Context
}

// start starts `softrnic run FLAGS -- ARGS`. The program is ended after a minute.
func start(t *testing.T, environ, flags []string, args ...string) *process {
	t.Helper()
	b := needBuild(t)
	p := &process{}
	p.ctx, p.cancel = context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(p.cancel)
	p.cmd = exec.CommandContext(p.ctx, b.softrnic, append(append([]string{"run"}, flags...), append([]string{"--"}, args...)...)...)
	p.cmd.WaitDelay = time.Second
	p.cmd.Env = append(append(os.Environ(), "SOFTRNIC_DROPIN_DIR="+b.libraries), environ...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	require.NoError(t, p.cmd.Start())
	return p
}

// wait waits for the end and returns the output and the exit status, 128 and the number of a signal that ended it.
func (p *process) wait(t *testing.T) (string, int) {
	t.Helper()
	defer p.cancel()
	err := p.cmd.Wait()
	if p.ctx.Err() != nil {
		t.Errorf("%q: not ended after a minute: %s", p.cmd.Args, p.out.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return p.out.String(), 128 + int(status.Signal())
	}
	return p.out.String(), status.ExitStatus()
}

// runProgram runs a program that must succeed and returns its output.
func runProgram(t *testing.T, environ, flags []string, args ...string) string {
	t.Helper()
	out, status := start(t, environ, flags, args...).wait(t)
	require.Zero(t, status, "%q\n%s", args, out)
	return out
}

// runPair runs a server and, when it listens on the TCP port, a client of it, which is the server's command with an
// address behind it. Both must succeed.
func runPair(t *testing.T, environ, flags []string, port string, args ...string) (client string) {
	t.Helper()
	server := start(t, environ, flags, args...)
	awaitListener(t, server, port)
	client = runProgram(t, environ, flags, append(args, "127.0.0.1")...)
	out, status := server.wait(t)
	require.Zero(t, status, "server %q\n%s", args, out)
	return client
}

// freePort returns a TCP port that no program listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// awaitListener waits until a process listens on a TCP port of this network namespace. It does not connect: the servers
// accept one client.
func awaitListener(t *testing.T, p *process, port string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			text, err := os.ReadFile(file)
			if err == nil && listensOn(string(text), port) {
				return true
			}
		}
		return false
	}, 30*time.Second, 10*time.Millisecond, "%q does not listen on port %s: %s", p.cmd.Args, port, &p.out)
}

// listensOn reports whether a table of /proc/net has a listener (state 0A) on a port.
func listensOn(table, port string) bool {
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return false
	}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
			return true
		}
	}
	return false
}
