// Package dropin_test runs unmodified programs with the preloaded library and the engine: those of rdma-core and
// perftest where they are installed, and C and C++ programs of testdata.
package dropin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// envAll makes the tests run all combinations and sizes instead of a selection.
const envAll = "DROPIN_TEST_ALL"

var runAll = os.Getenv(envAll) != ""

func TestMain(m *testing.M) { os.Exit(programtest.RunTests(m)) }

func requireFiles(names ...string) error {
	var errs []error
	for _, name := range names {
		_, err := os.Stat(name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// A command is a program to run with the preloaded library.
type command struct {
	args    []string
	environ []string // in addition to that of the test
	limit   time.Duration
}

// A result is the end of a program.
type result struct {
	stdout, stderr string
	code           int // exit status, or -1
	signal         syscall.Signal
}

// start starts a program. The function returned waits for its end, and ends it at the limit (a minute unless set).
func (c command) start(t *testing.T) (*exec.Cmd, func() result) {
	t.Helper()
	limit := c.limit
	if limit == 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+filepath.Join(programtest.LibraryDir(t), "libsoftrnic-preload.so"))
	cmd.Env = append(cmd.Env, c.environ...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	return cmd, func() result {
		defer cancel()
		_ = cmd.Wait() // the state tells
		r := result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
		if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() {
			r.signal = s.Signal()
		}
		if ctx.Err() != nil {
			r.stderr += fmt.Sprintf("\n(ended after %v)", limit)
		}
		return r
	}
}

func (c command) runProgram(t *testing.T) result {
	t.Helper()
	_, wait := c.start(t)
	return wait()
}

// String returns all that a program left, for messages of failed assertions.
func (r result) String() string {
	return fmt.Sprintf("exit status %d, signal %d\n%s\n%s", r.code, r.signal, r.stdout, r.stderr)
}

// buildProgram compiles a program of testdata and returns its path.
func buildProgram(t *testing.T, source string, flags ...string) string {
	t.Helper()
	cc, standard := "gcc", "-std=gnu11"
	if filepath.Ext(source) == ".cc" {
		cc, standard = "g++", "-std=c++17"
	}
	programtest.NeedPrograms(t, cc)
	programtest.LibraryDir(t)
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(source, filepath.Ext(source)))
	args := []string{standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", out, filepath.Join("testdata", source)}
	args = append(append(args, flags...), "-libverbs")
	text, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", cc, strings.Join(args, " "), text)
	return out
}
