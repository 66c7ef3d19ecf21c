package control

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
)

// Client runs commands at a server.
type Client struct {
	Addr string // "host:port"
}

// Process is a command that runs at the server.
type Process struct {
	args []string
	conn net.Conn
	stop func() bool // ends the watch over the context
	ctx  context.Context
	done chan struct{}
	err  error // set when done is closed
}

// Start runs a command. What it writes goes to stdout and stderr, from another
// goroutine until Wait has returned. When ctx ends, the command is killed.
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

// WriteFile writes a file, with the folders on its way.
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

// readEvents passes on what the command writes until it ends.
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

// Done is closed when the command has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end: nil for status 0, *ExitError for another.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Kill ends the command, and what it has started, and waits until the
// connection is closed. Wait returns an error then, unless it had ended before.
func (p *Process) Kill() {
	p.conn.Close()
	<-p.done
}

// contextCause is why ctx ended, if it has, and err otherwise.
func contextCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
