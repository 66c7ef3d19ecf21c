// Package childtest runs a test binary as child processes that execute orders of its tests: processes that share an
// address, or that are killed. TestMain calls Serve with the function that executes an order, and a test Start.
package childtest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// env makes a test binary a child.
const env = "SOFTRNIC_TEST_CHILD"

// An envelope is a reply, with the error of its order.
type envelope[Reply any] struct {
	Err   string
	Reply Reply
}

// Serve returns unless this process is a child. A child executes orders, one JSON value a line, from its
// standard input until that ends.
func Serve[Order, Reply any](execute func(*Order, *Reply) error) {
	if os.Getenv(env) == "" {
		return
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o Order
		if err := in.Decode(&o); err != nil {
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, "child:", err)
			}
			os.Exit(0)
		}
		var e envelope[Reply]
		if err := execute(&o, &e.Reply); err != nil {
			e.Err = err.Error()
		}
		if err := out.Encode(e); err != nil {
			os.Exit(1)
		}
	}
}

// A Child is a child process, seen by its parent. Its methods fail the test if the child cannot be
// reached. They are for one goroutine.
type Child[Order, Reply any] struct {
	t   testing.TB
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
}

// Start starts a child. It ends with the test.
func Start[Order, Reply any](t testing.TB) *Child[Order, Reply] {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := &Child[Order, Reply]{t: t, cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), env+"=1")
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.in, c.out = json.NewEncoder(in), json.NewDecoder(out)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = c.cmd.Wait() // it may have been killed
	})
	return c
}

// Process returns the process, for signals.
func (c *Child[Order, Reply]) Process() *os.Process { return c.cmd.Process }

// Send sends an order. Receive waits for its reply.
func (c *Child[Order, Reply]) Send(o Order) {
	c.t.Helper()
	require.NoError(c.t, c.in.Encode(o))
}

// Receive waits for the next reply. The order must have succeeded.
func (c *Child[Order, Reply]) Receive() Reply {
	c.t.Helper()
	var e envelope[Reply]
	require.NoError(c.t, c.out.Decode(&e))
	require.Empty(c.t, e.Err)
	return e.Reply
}

// Do sends an order and waits for its reply.
func (c *Child[Order, Reply]) Do(o Order) Reply {
	c.t.Helper()
	c.Send(o)
	return c.Receive()
}

// Kill kills the process without a chance to clean up, and waits for its end.
func (c *Child[Order, Reply]) Kill() {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Kill())
	_ = c.cmd.Wait() // the signal is its error
}
