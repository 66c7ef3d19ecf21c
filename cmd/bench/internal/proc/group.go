package proc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/cpus"
)

// grace is how long a worker may take to leave before it is killed.
const grace = 2 * time.Second

// A Spec names a worker to start.
type Spec struct {
	Name, Role string // as registered
	Args       any    // sent as JSON, read with Args; may be nil
}

// Options of a group. The zero value is ready to use.
type Options struct {
	Timeout time.Duration // of each call and exchange; 30 s if zero

	// Pin keeps each worker on one CPU, on different ones as far as there are
	// enough. Where two workers wake each other, the system may put them on one
	// core or on two, and the time of a wake-up differs fourfold. Linux only.
	Pin bool

	// Bind starts workers on the processors that ranks would be bound to, with as many
	// threads for Go as they have; none if empty. Pin comes later, and has the last word.
	Bind cpus.Binding
}

type stderrKey struct{}

// WithStderr makes the stderr of workers that are started under the context go
// to w, line by line, instead of this process's stderr.
func WithStderr(ctx context.Context, w io.Writer) context.Context {
	return context.WithValue(ctx, stderrKey{}, &lockedWriter{w: w})
}

func stderrOf(ctx context.Context) io.Writer {
	if w, ok := ctx.Value(stderrKey{}).(io.Writer); ok {
		return w
	}
	return os.Stderr
}

// A Group is a set of workers that run together. Its functions are for one
// goroutine.
type Group struct {
	procs   []*process
	timeout time.Duration

	// failed ends with what went wrong first as its cause: a worker, a time
	// limit, the context of Start or of a call; or ErrClosed.
	failed context.Context
	fail   context.CancelCauseFunc

	mu       sync.Mutex // guards the exchange in progress
	values   []json.RawMessage
	received int
}

// Start starts the workers; their rank is their place in specs. When it
// returns they run, but have not necessarily come far: the first Call waits for
// them. When one fails, or ctx ends, all are killed. The caller closes the
// group.
func Start(ctx context.Context, o Options, specs ...Spec) (*Group, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("proc: cannot find this program to start workers: %w", err)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	g := &Group{timeout: o.Timeout, values: make([]json.RawMessage, len(specs))}
	hellos, err := newHelloMessages(o, specs)
	if err != nil {
		return nil, err
	}
	sets, err := cmp.Or(o.Bind, cpus.None).Places(len(specs))
	if err != nil {
		return nil, fmt.Errorf("proc: %w", err)
	}
	for i, s := range specs {
		p, err := launchProcess(exe, s, i, cpus.Turn(sets, i))
		if err != nil {
			for _, p := range g.procs {
				p.kill()
				_ = p.cmd.Wait()
				p.closeFiles()
			}
			return nil, err
		}
		g.procs = append(g.procs, p)
	}

	// All are there before any hears who it is, so that handle sees the group
	// whole.
	g.failed, g.fail = context.WithCancelCause(ctx)
	context.AfterFunc(g.failed, g.killUnlessClosed)
	stderr := stderrOf(ctx)
	for i, p := range g.procs {
		go func() { g.fail(p.watchUntilExit(stderr, g.handleMessage)) }()
		_ = p.sendMessage(hellos[i], g.timeout) // watch reports a worker that is gone
	}
	return g, nil
}

// newHelloMessages makes the first message to each worker.
func newHelloMessages(o Options, specs []Spec) ([]message, error) {
	var order []int
	if o.Pin {
		order = cpus.Order()
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
		return // Close lets them leave
	}
	for _, p := range g.procs {
		p.kill()
	}
}

// handleMessage takes a worker's messages, on that worker's goroutine.
func (g *Group) handleMessage(p *process, m message) error {
	switch m.Kind {
	case kindReply:
		select {
		case p.replies <- m.Data:
			return nil
		default:
			return errors.New("it answered twice")
		}
	case kindExchange:
		return g.addExchangeValue(p.rank, m.Data)
	default:
		return fmt.Errorf("it sent a message of unknown kind %q", m.Kind)
	}
}

// addExchangeValue keeps a worker's value and, when it is the last, gives all to all.
func (g *Group) addExchangeValue(rank int, value json.RawMessage) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.values[rank] != nil {
		return errors.New("it entered an exchange twice")
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
		_ = p.sendMessage(m, g.timeout) // watch reports a worker that is gone
	}
	return nil
}

// Call sends req to every worker and returns their answers in rank order. It
// fails as soon as one worker does, when ctx ends, or after the group's time
// limit; the group is then of no further use.
func Call[Req, Resp any](ctx context.Context, g *Group, req Req) ([]Resp, error) {
	m, err := encodeMessage(kindCall, req)
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(g.timeout)
	defer limit.Stop()
	for _, p := range g.procs {
		_ = p.sendMessage(m, g.timeout) // watch reports a worker that is gone
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

// PIDs returns the workers' process ids in rank order.
func (g *Group) PIDs() []int {
	pids := make([]int, len(g.procs))
	for i, p := range g.procs {
		pids[i] = p.cmd.Process.Pid
	}
	return pids
}

// Close lets every worker leave, kills those that take longer than two seconds,
// and waits until each is reaped. Calls after Close fail with ErrClosed.
// Closing twice is safe.
func (g *Group) Close() {
	g.fail(ErrClosed)
	var wg sync.WaitGroup
	for _, p := range g.procs {
		wg.Go(p.stopGracefully)
	}
	wg.Wait()
}
