package pmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// replyTimeout is the time limit of a reply that does not depend on other ranks.
const replyTimeout = time.Minute

// A conn is the connection to a manager. It carries one request at a time, each with
// one reply. It survives a canceled request: the pending reply is read before the next
// request.
type conn struct {
	net.Conn
	name string // "PMI_FD=3", for errors

	sem     chan struct{} // full during a request
	buf     []byte        // received, not parsed yet
	pending *request      // request whose reply is pending
	err     error         // the connection has failed

	write sync.Mutex // serializes messages, also of Abort
}

// A request is a message and the command of its reply.
type request struct {
	message wire.Message
	version wire.Version
	reply   string
	fence   bool // the reply depends on other ranks
}

func newConn(c net.Conn, name string) *conn {
	return &conn{Conn: c, name: name, sem: make(chan struct{}, 1)}
}

// lock acquires the connection. It waits for requests of other goroutines.
func (c *conn) lock(ctx context.Context) error {
	select {
	case c.sem <- struct{}{}:
		if c.err != nil {
			<-c.sem
			return c.err
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *conn) unlock() { <-c.sem }

// fail closes the connection with a cause.
func (c *conn) fail(err error) error {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %w", c.name, err)
		c.Close()
	}
	return c.err
}

// send writes a message.
func (c *conn) send(m wire.Message, v wire.Version) error {
	b, err := m.Append(nil, v)
	if err != nil {
		return err
	}
	c.write.Lock()
	defer c.write.Unlock()
	if err := c.SetWriteDeadline(time.Now().Add(replyTimeout)); err != nil {
		return connError(err)
	}
	if _, err := c.Write(b); err != nil {
		return connError(err)
	}
	return nil
}

// roundTrip sends a request and returns the reply. The caller holds the lock.
func (c *conn) roundTrip(ctx context.Context, r *request) (wire.Message, error) {
	if err := ctx.Err(); err != nil {
		return wire.Message{}, context.Cause(ctx)
	}
	if err := c.send(r.message, r.version); err != nil {
		if format := (*wire.FormatError)(nil); errors.As(err, &format) {
			return wire.Message{}, err
		}
		return wire.Message{}, c.fail(err)
	}
	c.pending = r
	return c.awaitReply(ctx)
}

// awaitReply returns the pending reply.
func (c *conn) awaitReply(ctx context.Context) (wire.Message, error) {
	r := c.pending
	if !r.fence {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, replyTimeout, fmt.Errorf("%w: no reply to %q within %v", ErrGone, r.message, replyTimeout))
		defer cancel()
	}
	m, err := c.readMessage(ctx)
	if format := (*wire.FormatError)(nil); errors.As(err, &format) {
		return m, c.fail(newProtocolError(r.message.String(), string(format.Bytes), format.Why))
	}
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrGone) {
			return m, c.fail(cause)
		}
		return m, context.Cause(ctx) // the reply stays pending
	}
	if err != nil {
		return m, c.fail(err)
	}
	c.pending = nil
	if m.Cmd != r.reply {
		return m, c.fail(newProtocolError(r.message.String(), m.String(), "want "+r.reply))
	}
	return m, nil
}

// readMessage returns the next message. A partly received message is kept when ctx
// ends.
func (c *conn) readMessage(ctx context.Context) (wire.Message, error) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.SetReadDeadline(time.Unix(1, 0))
		close(ended)
	})
	defer func() {
		if !stop() {
			<-ended
			c.SetReadDeadline(time.Time{})
		}
	}()
	for {
		m, n, err := wire.Next(c.buf)
		if err != nil {
			return m, err
		}
		if n > 0 {
			c.buf = c.buf[n:]
			return m, nil
		}
		chunk := make([]byte, 4096)
		n, err = c.Read(chunk)
		c.buf = append(c.buf, chunk[:n]...)
		if n == 0 && err != nil {
			return m, connError(err)
		}
	}
}

// connError wraps the error of a connection.
func connError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: connection closed", ErrGone)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: write timeout", ErrGone)
	}
	return fmt.Errorf("%w: %w", ErrGone, err)
}

// replyError returns the error of a reply that rejects the request, or nil.
func replyError(r *request, m wire.Message) error {
	rc, ok := m.Get("rc")
	if !ok || rc == "0" {
		return nil
	}
	cause := "rc=" + rc
	for _, key := range []string{"msg", "errmsg"} {
		if text, ok := m.Get(key); ok {
			cause += ", " + strings.ReplaceAll(text, "_", " ")
		}
	}
	return fmt.Errorf("process manager: request %q rejected: %s", r.message, cause)
}
