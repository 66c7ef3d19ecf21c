package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
	"github.com/softrnic/softrnic/internal/environment"
)

// errParentGone is the cause of a worker's context when its stdin is closed.
var errParentGone = errors.New("proc: parent closed the control channel")

// A Worker is the worker's side of the control channel. Its functions must be called by one
// goroutine at a time.
type Worker struct {
	Rank int // index in the specs of Start
	Size int // number of workers in the group

	args    json.RawMessage
	timeout time.Duration
	out     *json.Encoder

	// Messages of the parent by kind: a call may arrive during an exchange. There is at most
	// one of each at a time.
	in map[kind]chan json.RawMessage
}

// serveProcess runs a worker process and returns the exit status.
func serveProcess(name, role string) int {
	// Ctrl-C at a terminal signals the whole process group. The parent handles it.
	signal.Ignore(os.Interrupt)
	environment.WarnUnknown(func(string) {}) // the parent has warned
	w := &Worker{
		out: json.NewEncoder(os.Stdout),
		in: map[kind]chan json.RawMessage{
			kindHello:    make(chan json.RawMessage, 1),
			kindCall:     make(chan json.RawMessage, 1),
			kindExchange: make(chan json.RawMessage, 1),
		},
	}
	os.Stdout = os.Stderr // keeps a stray Print out of the control channel

	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		cancel(w.readMessages())
		// The body may poll without checking its context.
		time.Sleep(grace)
		os.Exit(1)
	}()
	err := w.runFunc(ctx, name, role)
	if err == nil || errors.Is(err, errParentGone) {
		return 0
	}
	_ = w.sendMessage(kindError, err.Error()) // if this fails, the exit status reports the failure
	return 1
}

// readMessages dispatches the parent's messages by kind until stdin closes or a message is
// malformed.
func (w *Worker) readMessages() error {
	dec := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			return errParentGone
		}
		ch, ok := w.in[m.Kind]
		if !ok {
			return fmt.Errorf("proc: parent sent a message of unknown kind %q", m.Kind)
		}
		ch <- m.Data
	}
}

func (w *Worker) runFunc(ctx context.Context, name, role string) error {
	fn, err := lookupFunc(name, role)
	if err != nil {
		return err
	}
	h, err := receiveMessage[hello](ctx, w, kindHello)
	if err != nil {
		return err
	}
	w.Rank, w.Size, w.args, w.timeout = h.Rank, h.Size, h.Args, h.Timeout
	if h.CPU != nil {
		if err := cpus.PinCPU(*h.CPU); err != nil {
			return fmt.Errorf("proc: pin to CPU %d: %w", *h.CPU, err)
		}
	}
	return fn(ctx, w)
}

// receiveMessage waits for the next message of kind k.
func receiveMessage[T any](ctx context.Context, w *Worker, k kind) (T, error) {
	select {
	case b := <-w.in[k]:
		return decodeData[T](b)
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}

func (w *Worker) sendMessage(k kind, v any) error {
	m, err := encodeMessage(k, v)
	if err != nil {
		return err
	}
	if err := w.out.Encode(m); err != nil {
		return errParentGone
	}
	return nil
}

// Exchange sends v to every worker of the group and returns the values of all workers in rank
// order. Every worker must call it with the same type. Exchange blocks until the last worker
// has called it, at most for the timeout of the group.
func Exchange[T any](ctx context.Context, w *Worker, v T) ([]T, error) {
	if err := w.sendMessage(kindExchange, v); err != nil {
		return nil, err
	}
	timeout := fmt.Errorf("%w: worker %d: exchange took %v", ErrTimeout, w.Rank, w.timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout, timeout)
	defer cancel()
	return receiveMessage[[]T](ctx, w, kindExchange)
}

// Barrier returns once every worker of the group has called it.
func Barrier(ctx context.Context, w *Worker) error {
	_, err := Exchange(ctx, w, struct{}{})
	return err
}

// Serve replies to the parent's calls with the results of fn until the group is closed or fn
// fails. It returns the error of fn, which becomes the worker's.
func Serve[Req, Resp any](ctx context.Context, w *Worker, fn func(context.Context, Req) (Resp, error)) error {
	for {
		req, err := receiveMessage[Req](ctx, w, kindCall)
		if err != nil {
			return err
		}
		resp, err := fn(ctx, req)
		if err != nil {
			return err
		}
		if err := w.sendMessage(kindReply, resp); err != nil {
			return err
		}
	}
}

// Command is the first argument that makes a program a worker.
const Command = "worker"

// A Func is the body of a worker. Its context is cancelled when the parent closes the group or
// ends.
type Func func(ctx context.Context, w *Worker) error

var workerFuncs = map[string]Func{}

// Register registers fn under name and role. It is called from init functions and panics if the
// pair is already registered.
func Register(name, role string, fn Func) {
	key := name + "/" + role
	if _, taken := workerFuncs[key]; taken {
		panic("proc: worker " + key + ": registered twice")
	}
	workerFuncs[key] = fn
}

// RegisterArgs is a Register of a function that takes the value of Spec.Args.
func RegisterArgs[A any](name, role string, fn func(ctx context.Context, w *Worker, args A) error) {
	Register(name, role, func(ctx context.Context, w *Worker) error {
		args, err := decodeData[A](w.args)
		if err != nil {
			return err
		}
		return fn(ctx, w, args)
	})
}

func lookupFunc(name, role string) (Func, error) {
	if fn, ok := workerFuncs[name+"/"+role]; ok {
		return fn, nil
	}
	var known []string
	for k := range workerFuncs {
		known = append(known, k)
	}
	slices.Sort(known)
	return nil, fmt.Errorf("proc: unknown worker %s/%s; known workers: %s", name, role, strings.Join(known, ", "))
}

// ServeIfWorker runs the worker and exits if the process was started as one. Otherwise it
// returns at once. Call it first in main, and in TestMain of every test that starts workers.
func ServeIfWorker() {
	if len(os.Args) != 4 || os.Args[1] != Command {
		return
	}
	os.Exit(serveProcess(os.Args[2], os.Args[3]))
}
