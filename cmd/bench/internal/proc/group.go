package proc

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
	"github.com/softrnic/softrnic/cmd/internal/rankproc"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// grace is the time that a worker has to exit before it is killed.
const grace = 2 * time.Second

// A Spec describes a worker to start.
type Spec struct {
	Name, Role string // as registered
	Args       any    // sent as JSON; see RegisterArgs; may be nil
}

// Options are the options of a group. The zero value is ready to use.
type Options struct {
	Timeout time.Duration // of each call and exchange; 30 s if zero

	// Pin pins each worker to one CPU, and to different ones as long as there are enough.
	// Otherwise the system may run two workers that wake each other on one core or on two, and
	// the wake-up time differs fourfold. Linux only.
	Pin bool

	// Bind starts each worker on the processors that a rank would be bound to, with GOMAXPROCS
	// equal to their number. Empty means no binding. Pin is applied later and overrides Bind.
	Bind cpus.Binding

	// CPUs are those on which all workers start, instead of those of Bind.
	CPUs []int

	// Ranks makes the workers the ranks of a job, which they join by package pmi.
	Ranks bool
}

type stderrKey struct{}

// WithStderr returns a context under which Start copies the stderr of workers to w, line by
// line, instead of to this process's stderr.
func WithStderr(ctx context.Context, w io.Writer) context.Context {
	return context.WithValue(ctx, stderrKey{}, &lockedWriter{w: w})
}

func stderrOf(ctx context.Context) io.Writer {
	if w, ok := ctx.Value(stderrKey{}).(io.Writer); ok {
		return w
	}
	return os.Stderr
}

// A Group is a set of workers that run together. Its functions must be called by one goroutine
// at a time.
type Group struct {
	procs   []*process
	timeout time.Duration

	// failed is cancelled with the first failure as its cause: that of a worker, a timeout, the
	// context of Start or of a call, or ErrClosed.
	failed context.Context
	fail   context.CancelCauseFunc

	job   *server.Job    // nil unless the workers are ranks
	port  *server.Port   // nil unless the ranks inherit no socket
	ranks sync.WaitGroup // their connections to the job

	mu       sync.Mutex // guards the exchange in progress
	values   []json.RawMessage
	received int
}

// Start starts the workers. The rank of a worker is its index in specs. Start does not wait for
// the workers to be ready; the first Call does. When a worker fails or ctx ends, all workers
// are killed. The caller must close the group.
func Start(ctx context.Context, o Options, specs ...Spec) (*Group, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("proc: start workers: %w", err)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	g := &Group{timeout: o.Timeout, values: make([]json.RawMessage, len(specs))}
	hellos, err := newHelloMessages(o, specs)
	if err != nil {
		return nil, err
	}
	sets, err := cmp.Or(o.Bind, cpus.None).CPUSets(len(specs))
	if err != nil {
		return nil, fmt.Errorf("proc: %w", err)
	}
	if o.CPUs != nil {
		sets = [][]int{o.CPUs}
	}
	g.failed, g.fail = context.WithCancelCause(ctx)
	if o.Ranks {
		if err := g.openJob(len(specs)); err != nil {
			g.fail(err)
			return nil, fmt.Errorf("proc: %w", err)
		}
	}
	for i, s := range specs {
		var rank *rankproc.Rank
		if o.Ranks {
			rank = &rankproc.Rank{Rank: i, Size: len(specs), Local: i, Count: len(specs), Port: g.port}
		}
		p, err := launchProcess(exe, s, i, cpus.SetOf(sets, i), rank)
		if err != nil {
			g.fail(err)
			for _, p := range g.procs {
				p.kill()
				_ = p.cmd.Wait()
				p.closeFiles()
			}
			g.closeJob()
			return nil, err
		}
		g.procs = append(g.procs, p)
	}

	// Start all workers before the first hello message, so that handleMessage sees the complete
	// group.
	context.AfterFunc(g.failed, g.killUnlessClosed)
	stderr := stderrOf(ctx)
	for i, p := range g.procs {
		if p.pmi != nil {
			g.serveRank(i, p.pmi)
		}
		go func() { g.fail(p.watchUntilExit(stderr, g.handleMessage)) }()
		_ = p.sendMessage(hellos[i], g.timeout) // watchUntilExit reports a failed worker
	}
	return g, nil
}

// newHelloMessages returns the first message to each worker.
func newHelloMessages(o Options, specs []Spec) ([]message, error) {
	var order []int
	if o.Pin {
		order = cpus.CPUOrder()
	}
	hellos := make([]message, len(specs))
	for i, s := range specs {
		args, err := json.Marshal(s.Args)
		if err != nil {
			return nil, fmt.Errorf("proc: arguments of worker %s/%s: %w", s.Name, s.Role, err)
		}
		h := hello{Rank: i, Size: len(specs), Args: args, Timeout: o.Timeout}
		if len(order) > 0 {
			h.CPU = &order[i%len(order)]
		}
		if hellos[i], err = encodeMessage(kindHello, h); err != nil {
			return nil, err
		}
	}
	return hellos, nil
}

func (g *Group) killUnlessClosed() {
	if errors.Is(context.Cause(g.failed), ErrClosed) {
		return // Close waits for the workers to exit
	}
	for _, p := range g.procs {
		p.kill()
	}
}

// handleMessage handles a message of p. It is called by p's goroutine.
func (g *Group) handleMessage(p *process, m message) error {
	switch m.Kind {
	case kindReply:
		select {
		case p.replies <- m.Data:
			return nil
		default:
			return errors.New("unexpected second reply")
		}
	case kindExchange:
		return g.addExchangeValue(p.rank, m.Data)
	default:
		return fmt.Errorf("message of unknown kind %q", m.Kind)
	}
}

// addExchangeValue stores the exchange value of a worker. The last value completes the
// exchange: all values are sent to all workers.
func (g *Group) addExchangeValue(rank int, value json.RawMessage) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.values[rank] != nil {
		return errors.New("unexpected second value in an exchange")
	}
	g.values[rank] = value
	if g.received++; g.received < len(g.values) {
		return nil
	}
	m, err := encodeMessage(kindExchange, g.values)
	if err != nil {
		return err
	}
	clear(g.values)
	g.received = 0
	for _, p := range g.procs {
		_ = p.sendMessage(m, g.timeout) // watchUntilExit reports a failed worker
	}
	return nil
}

// CallFirst is a Call that returns the reply of rank 0.
func CallFirst[Req, Resp any](ctx context.Context, g *Group, req Req) (first Resp, err error) {
	all, err := Call[Req, Resp](ctx, g, req)
	if err != nil {
		return first, err
	}
	return all[0], nil
}

// Call sends req to every worker and returns their replies in rank order. It fails when a
// worker fails, when ctx ends, or after the timeout of the group. The group cannot be used
// after a failure.
func Call[Req, Resp any](ctx context.Context, g *Group, req Req) ([]Resp, error) {
	m, err := encodeMessage(kindCall, req)
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(g.timeout)
	defer limit.Stop()
	for _, p := range g.procs {
		_ = p.sendMessage(m, g.timeout) // watchUntilExit reports a failed worker
	}
	out := make([]Resp, len(g.procs))
	for i, p := range g.procs {
		select {
		case b := <-p.replies:
			if out[i], err = decodeData[Resp](b); err != nil {
				g.fail(p.newWorkerError(err))
			}
		case <-ctx.Done():
			g.fail(context.Cause(ctx))
		case <-limit.C:
			g.fail(p.newWorkerError(fmt.Errorf("%w (%v)", ErrTimeout, g.timeout)))
		case <-g.failed.Done():
		}
		if g.failed.Err() != nil {
			return nil, context.Cause(g.failed)
		}
	}
	return out, nil
}

// Close asks every worker to exit, kills those that take longer than grace, and waits until all
// are reaped. Calls after Close fail with ErrClosed. Close is idempotent.
func (g *Group) Close() {
	g.fail(ErrClosed)
	var wg sync.WaitGroup
	for _, p := range g.procs {
		wg.Go(p.stopGracefully)
	}
	wg.Wait()
	g.closeJob()
}

// openJob starts the process manager of n ranks, which fails the group if a rank aborts the job.
func (g *Group) openJob(n int) (err error) {
	g.job, err = server.New(server.Options{Size: n, ID: rand.Text(), Notify: func(e server.Event) {
		if e.Kind == server.Abort {
			g.fail(g.procs[e.Rank].newWorkerError(fmt.Errorf("rank %d aborted the job with code %d: %s", e.Rank, e.Code, e.Why)))
		}
	}})
	if err == nil && !server.CanPair {
		g.port, err = server.Listen(server.PortOptions{Address: "127.0.0.1:0", Size: n, Secret: rand.Text(), OnRank: g.serveRank})
	}
	return err
}

// serveRank serves the connection of a rank until it ends.
func (g *Group) serveRank(rank int, c net.Conn) {
	g.ranks.Go(func() { _ = g.job.Serve(rank, c) }) // watchUntilExit reports a failed worker
}

// closeJob ends the process manager. The ranks have exited.
func (g *Group) closeJob() {
	if g.port != nil {
		g.port.Close()
	}
	g.ranks.Wait()
}

// Errors of workers and groups, for errors.Is.
var (
	ErrExited  = errors.New("proc: worker exited early")
	ErrTimeout = errors.New("proc: reply timed out")
	ErrClosed  = errors.New("proc: group closed")
)

// A WorkerError is the failure of one worker of a group.
type WorkerError struct {
	Name, Role string
	Rank       int
	PID        int
	Err        error
	Stderr     string // the last lines of its stderr; often empty
}

// Error implements error.
func (e *WorkerError) Error() string {
	s := fmt.Sprintf("worker %s/%s (rank %d, pid %d): %v", e.Name, e.Role, e.Rank, e.PID, e.Err)
	if e.Stderr != "" {
		s += "; the end of its stderr:\n" + e.Stderr
	}
	return s
}

// Unwrap returns the cause.
func (e *WorkerError) Unwrap() error { return e.Err }
