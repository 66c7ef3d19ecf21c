// Package runtest runs unmodified programs by softrnic run: those of rdma-core, perftest, UCX and Open MPI where they are
// installed, and the example for continuous integration.
package runtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

func TestMain(m *testing.M) { os.Exit(programtest.RunTests(m)) }

// A build is the command softrnic, which has no cgo and so is static, and the directory of the libraries.
type build struct{ softrnic, libraries string }

var buildCommand = sync.OnceValues(func() (file string, err error) {
	file = filepath.Join(programtest.WorkDir(), "softrnic")
	command := exec.Command("go", "build", "-o", file, "./cmd/softrnic")
	command.Dir, command.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build: %w\n%s", err, out)
	}
	return file, err
})

// needBuild builds the command and the libraries, once, or skips the test where that is not possible.
func needBuild(t *testing.T) build {
	t.Helper()
	libraries := programtest.LibraryDir(t)
	softrnic, err := buildCommand()
	require.NoError(t, err)
	return build{softrnic, libraries}
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
	programtest.WaitListening(t, port)
	client = runProgram(t, environ, flags, append(args, "127.0.0.1")...)
	out, status := server.wait(t)
	require.Zero(t, status, "server %q\n%s", args, out)
	return client
}
