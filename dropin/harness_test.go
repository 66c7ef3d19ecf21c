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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// envAll makes the tests run all combinations and sizes instead of a selection.
const envAll = "DROPIN_TEST_ALL"

var runAll = os.Getenv(envAll) != ""

// envLibraries names a directory with built libraries, which the tests use instead of building them.
const envLibraries = "DROPIN_TEST_LIBRARIES"

// workDir is the directory of libraries and programs, removed at the end.
var workDir string

func TestMain(m *testing.M) {
	code := func() int {
		var err error
		if workDir, err = os.MkdirTemp("", "dropin-test-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(workDir)
		return m.Run()
	}()
	os.Exit(code)
}

// buildLibraries builds the libraries once and returns their directory.
var buildLibraries = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(envLibraries); dir != "" {
		return dir, nil
	}
	out, err := exec.Command("./build.sh", workDir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build.sh: %w\n%s", err, out)
	}
	return workDir, nil
})

// libraryDir returns the directory of the libraries, or skips the test where they cannot be built.
func libraryDir(t *testing.T) string {
	t.Helper()
	require.NoError(t, requireFiles("/usr/include/infiniband/verbs.h"), "apt-get install libibverbs-dev librdmacm-dev")
	dir, err := buildLibraries()
	require.NoError(t, err)
	return dir
}

func requireFiles(names ...string) error {
	var errs []error
	for _, name := range names {
		_, err := os.Stat(name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+filepath.Join(libraryDir(t), "libsoftrnic-preload.so"))
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
	needPrograms(t, cc)
	libraryDir(t)
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(source, filepath.Ext(source)))
	args := []string{standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", out, filepath.Join("testdata", source)}
	args = append(append(args, flags...), "-libverbs")
	text, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", cc, strings.Join(args, " "), text)
	return out
}
