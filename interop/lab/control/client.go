package control

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
)

// A Client runs commands at a server.
type Client struct {
	Addr string // "host:port"
}

// A Process is a command that runs at the server.
type Process struct {
	args []string
	conn net.Conn
	stop func() bool // stops watching the context
	ctx  context.Context
	done chan struct{}
	err  error // set before done is closed
}

// Start runs a command. Its output is written to stdout and stderr, from another goroutine, until
// Wait returns. If ctx is done, the command is killed.
func (c Client) Start(ctx context.Context, cmd Command, stdout, stderr io.Writer) (*Process, error) {
	conn, err := c.sendRequest(ctx, request{Command: &cmd})
	if err != nil {
		return nil, fmt.Errorf("run %q: %w", cmd.Args, err)
	}
	p := &Process{args: cmd.Args, conn: conn, ctx: ctx, done: make(chan struct{})}
	p.stop = context.AfterFunc(ctx, func() { conn.Close() })
	go p.readEvents(stdout, stderr)
	return p, nil
}

// WriteFile writes a file at the server and creates missing folders of its path.
func (c Client) WriteFile(ctx context.Context, f File) error {
	conn, err := c.sendRequest(ctx, request{File: &f})
	if err != nil {
		return fmt.Errorf("put %s: %w", f.Path, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var e event
	if err := gob.NewDecoder(conn).Decode(&e); err != nil {
		return fmt.Errorf("put %s: %w", f.Path, contextCause(ctx, err))
	}
	if e.Err != "" {
		return fmt.Errorf("put %s: %s", f.Path, e.Err)
	}
	return nil
}

func (c Client) sendRequest(ctx context.Context, r request) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := gob.NewEncoder(conn).Encode(r); err != nil {
		conn.Close()
		return nil, contextCause(ctx, err)
	}
	return conn, nil
}

// readEvents forwards the command's output until the command ends.
func (p *Process) readEvents(stdout, stderr io.Writer) {
	defer close(p.done)
	defer p.conn.Close()
	defer p.stop()
	decoder := gob.NewDecoder(p.conn)
	for {
		var e event
		if err := decoder.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the connection")
			}
			p.err = fmt.Errorf("%q: %w", p.args, contextCause(p.ctx, err))
			return
		}
		stdout.Write(e.Stdout)
		stderr.Write(e.Stderr)
		switch {
		case !e.Done:
		case e.Err != "":
			p.err = fmt.Errorf("%q: %s", p.args, e.Err)
			return
		case e.Code != 0:
			p.err = &ExitError{Args: p.args, Code: e.Code}
			return
		default:
			return
		}
	}
}

// Done returns a channel that is closed when the command has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the command ends. It returns nil for exit status 0 and an *ExitError for
// another.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Kill kills the command with its descendants and waits until the connection is closed. Wait then
// returns an error unless the command had ended before.
func (p *Process) Kill() {
	p.conn.Close()
	<-p.done
}

// contextCause returns the cause of ctx if it is done, and err otherwise.
func contextCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
