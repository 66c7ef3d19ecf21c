package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/mpi/pmi"
)

func TestMain(m *testing.M) {
	ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// Workers of the tests.
func init() {
	RegisterArgs("test", "sum", func(ctx context.Context, w *Worker, add int) error {
		ranks, err := Exchange(ctx, w, fmt.Sprintf("rank %d of %d", w.Rank, w.Size))
		if err != nil {
			return err
		}
		return Serve(ctx, w, func(ctx context.Context, n int) (sumReply, error) {
			if err := Barrier(ctx, w); err != nil {
				return sumReply{}, err
			}
			return sumReply{Sum: n + add, Ranks: ranks}, nil
		})
	})
	Register("test", "panic", func(context.Context, *Worker) error {
		fmt.Fprintln(os.Stderr, "about to fall over")
		panic("it fell over")
	})
	Register("test", "error", func(context.Context, *Worker) error {
		return errors.New("no such cable")
	})
	Register("test", "leave", func(context.Context, *Worker) error { return nil })
	Register("test", "hang", func(context.Context, *Worker) error { select {} })
	Register("test", "lonely", func(ctx context.Context, w *Worker) error { return Barrier(ctx, w) })
	Register("test", "babble", func(context.Context, *Worker) error {
		fmt.Println("a stray print does no harm")
		_, err := os.NewFile(1, "control").WriteString("but this does\n")
		return errors.Join(err, errors.New("it should have been killed"))
	})
	// join is a rank. Rank 1 aborts the job at the call of 1.
	Register("test", "join", func(ctx context.Context, w *Worker) error {
		m, err := pmi.Open(ctx)
		if err != nil {
			return err
		}
		return Serve(ctx, w, func(ctx context.Context, n int) (string, error) {
			if n == m.Rank() {
				return "", errors.Join(m.Abort(3, "no more"), waitUntilKilled())
			}
			return fmt.Sprintf("rank %d of %d", m.Rank(), m.Size()), m.Fence(ctx)
		})
	})

	// dial keeps a connection open while it runs.
	RegisterArgs("test", "dial", func(ctx context.Context, w *Worker, addr string) error {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		return Serve(ctx, w, func(context.Context, int) (int, error) { return 0, nil })
	})
	// parent starts a dial worker and exits without closing its group.
	RegisterArgs("test", "parent", func(ctx context.Context, w *Worker, addr string) error {
		g, err := Start(ctx, Options{}, Spec{Name: "test", Role: "dial", Args: addr})
		if err != nil {
			return err
		}
		if _, err := Call[int, int](ctx, g, 0); err != nil {
			return err
		}
		os.Exit(3)
		return nil
	})
}

func waitUntilKilled() error { select {} }

type sumReply struct {
	Sum   int
	Ranks []string
}

func start(t *testing.T, timeout time.Duration, roles ...string) *Group {
	t.Helper()
	specs := make([]Spec, len(roles))
	for i, r := range roles {
		specs[i] = Spec{Name: "test", Role: r, Args: 100 * i}
	}
	g, err := Start(WithStderr(t.Context(), io.Discard), Options{Timeout: timeout}, specs...)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}

func TestCallExchangeBarrier(t *testing.T) {
	g := start(t, 0, "sum", "sum", "sum")
	ranks := []string{"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}
	for n := range 3 {
		got, err := Call[int, sumReply](t.Context(), g, n)
		require.NoError(t, err)
		require.Equal(t, []sumReply{{n, ranks}, {n + 100, ranks}, {n + 200, ranks}}, got)
	}
	g.Close()
	g.Close()
	_, err := Call[int, sumReply](t.Context(), g, 1)
	require.ErrorIs(t, err, ErrClosed)
}

func TestCrashCarriesStderr(t *testing.T) {
	var stderr bytes.Buffer
	g, err := Start(WithStderr(t.Context(), &stderr), Options{}, Spec{Name: "test", Role: "hang"}, Spec{Name: "test", Role: "panic"})
	require.NoError(t, err)
	_, err = Call[int, int](t.Context(), g, 1)
	g.Close()

	var we *WorkerError
	require.ErrorAs(t, err, &we)
	require.ErrorIs(t, err, ErrExited)
	require.Equal(t, 1, we.Rank)
	require.Equal(t, "panic", we.Role)
	require.Contains(t, we.Stderr, "about to fall over\n")
	require.Contains(t, err.Error(), "panic: it fell over")
	require.Contains(t, stderr.String(), "[test/panic 1] about to fall over\n", "passed through with a prefix")
}

func TestFailures(t *testing.T) {
	for role, want := range map[string]string{
		"error":  "no such cable",
		"leave":  ErrExited.Error(),
		"babble": "malformed message on the control channel",
		"absent": "unknown worker test/absent; known workers: ",
	} {
		t.Run(role, func(t *testing.T) {
			g := start(t, 0, role, "hang")
			_, err := Call[int, int](t.Context(), g, 1)
			require.ErrorContains(t, err, want)
			_, again := Call[int, int](t.Context(), g, 1)
			require.Equal(t, err, again, "the group stays failed")
		})
	}
}

func TestTimeouts(t *testing.T) {
	g := start(t, 50*time.Millisecond, "hang")
	_, err := Call[int, int](t.Context(), g, 1)
	require.ErrorIs(t, err, ErrTimeout)

	// The timeout of a worker whose parent makes no call.
	g = start(t, 50*time.Millisecond, "lonely", "hang")
	<-g.failed.Done()
	require.ErrorContains(t, context.Cause(g.failed), ErrTimeout.Error())
}

func TestContextKills(t *testing.T) {
	stop := errors.New("Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	g, err := Start(ctx, Options{}, Spec{Name: "test", Role: "hang"})
	require.NoError(t, err)
	cancel(stop)
	<-g.procs[0].reaped // killed and reaped, without Close
	_, err = Call[int, int](t.Context(), g, 1)
	require.ErrorIs(t, err, stop)
	g.Close()

	// The same with the context of the call.
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(stop)
	g = start(t, 0, "hang")
	_, err = Call[int, int](ctx, g, 1)
	require.ErrorIs(t, err, stop)
}

// Workers that are ranks join their job, and an abort ends the group.
func TestRanks(t *testing.T) {
	role := Spec{Name: "test", Role: "join"}
	g, err := Start(WithStderr(t.Context(), io.Discard), Options{Ranks: true}, role, role)
	require.NoError(t, err)
	defer g.Close()
	got, err := Call[int, string](t.Context(), g, 9)
	require.NoError(t, err)
	require.Equal(t, []string{"rank 0 of 2", "rank 1 of 2"}, got)
	_, err = Call[int, string](t.Context(), g, 1)
	var we *WorkerError
	require.ErrorAs(t, err, &we)
	require.Equal(t, 1, we.Rank)
	require.ErrorContains(t, err, "rank 1 aborted the job with code 3: no more")
}

func TestWrongTypes(t *testing.T) {
	g := start(t, 0, "sum")
	_, err := Call[string, sumReply](t.Context(), g, "seven")
	require.ErrorContains(t, err, "decode int")

	g = start(t, 0, "sum")
	_, err = Call[int, []int](t.Context(), g, 7)
	require.ErrorContains(t, err, "decode []int")

	g = start(t, 0, "sum")
	_, err = Call[func(), int](t.Context(), g, nil)
	require.ErrorContains(t, err, "encode func()")
}

// A worker exits when its parent ends.
func TestOrphanLeaves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	g, err := Start(t.Context(), Options{}, Spec{Name: "test", Role: "parent", Args: l.Addr().String()})
	require.NoError(t, err)
	defer g.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.ErrorIs(t, err, io.EOF, "the orphan's connection closes")
}

func TestTailKeepsTheEnd(t *testing.T) {
	var tl stderrTail
	var in strings.Builder
	for i := range 3 * tailLines {
		fmt.Fprintln(&in, i)
	}
	tl.copyLines(strings.NewReader(in.String()), io.Discard, "")
	require.Len(t, tl.lines, tailLines)
	require.Equal(t, fmt.Sprint(3*tailLines-1), tl.lines[tailLines-1])
}

func TestRegisterTwice(t *testing.T) {
	require.Panics(t, func() { Register("test", "leave", nil) })
}
