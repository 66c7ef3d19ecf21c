package mpirun

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/agent"
)

// hang is the time after which a test has failed.
const hang = time.Minute

// TestMain runs this program as the agent or a rank of a job that a test starts, or runs the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if err := agent.Run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "rank" {
		os.Exit(runRole(os.Args[2], os.Args[3:]))
	}
	os.Setenv("GORACE", "halt_on_error=1 atexit_sleep_ms=0") // of agents and ranks
	goleak.VerifyTestMain(m)
}

// program returns n ranks of this program in a role.
func program(n int, role string, args ...string) Program {
	return Program{N: n, Args: append([]string{os.Args[0], "rank", role}, args...)}
}

// result is the outcome of a job.
type result struct {
	err            error
	stdout, stderr string
}

// text is a buffer of several writers, whose content can be waited for.
type text struct {
	mu     sync.Mutex
	b      bytes.Buffer
	change sync.Cond
}

func newText() *text {
	t := &text{}
	t.change.L = &t.mu
	return t
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.change.Broadcast()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// wait waits until the text contains what n times.
func (t *text) wait(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for strings.Count(t.b.String(), what) < n {
		t.change.Wait()
	}
}

// start starts a job and returns its output so far, and a channel with its result.
func start(t *testing.T, o Options) (stdout *text, done <-chan result) {
	stdout, stderr := newText(), newText()
	o.Stdout, o.Stderr = stdout, stderr
	o.Agent = []string{os.Args[0], "agent"}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second // longer than a process takes that handles SIGTERM
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), hang, fmt.Errorf("a test that hangs"))
	t.Cleanup(cancel)
	ended := make(chan result, 1)
	go func() {
		err := Run(ctx, o)
		ended <- result{err, stdout.String(), stderr.String()}
	}()
	return stdout, ended
}

// runJob runs a job to its end.
func runJob(t *testing.T, o Options) result {
	t.Helper()
	_, done := start(t, o)
	r := <-done
	t.Logf("%v\n%s%s", r.err, r.stdout, r.stderr)
	return r
}

// failed returns the failure of a job.
func (r result) failed(t *testing.T) *Failure {
	t.Helper()
	var f *Failure
	require.ErrorAs(t, r.err, &f)
	return f
}

// lines returns the lines of the output, which must end with an end of line.
func (r result) lines(t *testing.T) []string {
	t.Helper()
	require.True(t, r.stdout == "" || strings.HasSuffix(r.stdout, "\n"), "%q", r.stdout)
	return strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
}

// witness is a FIFO that processes hold open, by which a test observes that they run and that all
// have ended.
type witness struct {
	path string
	said chan string
	gone chan struct{}
}

func newWitness(t *testing.T) *witness {
	w := &witness{path: filepath.Join(t.TempDir(), "witness"), said: make(chan string, 100), gone: make(chan struct{})}
	require.NoError(t, mkfifo(w.path))
	go func() {
		defer close(w.gone)
		f, err := os.Open(w.path) // waits for the first process
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for b := make([]byte, 16); ; {
			n, err := io.ReadFull(f, b)
			if err != nil {
				return
			}
			w.said <- strings.TrimSpace(string(b[:n]))
		}
	}()
	return w
}

// waitFor waits for n processes and returns their names.
func (w *witness) waitFor(t *testing.T, n int) (said []string) {
	t.Helper()
	for range n {
		select {
		case s := <-w.said:
			said = append(said, s)
		case <-time.After(hang):
			t.Fatal("only", said)
		}
	}
	return said
}

// waitNone waits until all processes have ended.
func (w *witness) waitNone(t *testing.T) {
	t.Helper()
	select {
	case <-w.gone:
	case <-time.After(hang):
		t.Fatal("a process is left")
	}
}

// holdWitness has this process hold a witness open.
func holdWitness(path, who string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	held = append(held, f)
	_, err = fmt.Fprintf(f, "%-16s", who)
	return err
}

var held []*os.File // open until this process ends
