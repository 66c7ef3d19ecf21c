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

// replyTimeout is how long a manager may take to answer what it can answer at once.
const replyTimeout = time.Minute

// conn is the connection to a manager: one request after the other, each with one
// answer. It survives a request that is given up: its answer is owed, and is read
// before the next.
type conn struct {
	net.Conn
	name string // "PMI_FD=3", for errors

	sem     chan struct{} // full while a request is under way
	buf     []byte        // read, and not taken as a message
	pending *request      // whose answer has still to come
	err     error         // why nothing can be asked any more

	write sync.Mutex // messages leave whole, also that of Abort
}

// request is what is asked, and the command of the answer.
type request struct {
	message wire.Message
	version wire.Version
	reply   string
	fence   bool // the answer waits for others
}

func newConn(c net.Conn, name string) *conn {
	return &conn{Conn: c, name: name, sem: make(chan struct{}, 1)}
}

// lock waits for the requests of others to end.
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

// fail ends the connection's use, for a reason.
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

// roundTrip sends a request and returns the answer. The caller has the lock.
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

// awaitReply returns the answer that is owed.
func (c *conn) awaitReply(ctx context.Context) (wire.Message, error) {
	r := c.pending
	if !r.fence {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, replyTimeout, fmt.Errorf("%w: no answer to %q within %v", ErrGone, r.message, replyTimeout))
		defer cancel()
	}
	m, err := c.readMessage(ctx)
	if format := (*wire.FormatError)(nil); errors.As(err, &format) {
		return m, c.fail(&ProtocolError{Request: r.message.String(), Answer: string(format.Bytes), Why: format.Why})
	}
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrGone) {
			return m, c.fail(cause)
		}
		return m, context.Cause(ctx) // it is still owed
	}
	if err != nil {
		return m, c.fail(err)
	}
	c.pending = nil
	if m.Cmd != r.reply {
		return m, c.fail(&ProtocolError{Request: r.message.String(), Answer: m.String(), Why: "want " + r.reply})
	}
	return m, nil
}

// readMessage returns the next message. What was read of one is kept when ctx ends.
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

// connError says in words what the end of a connection means.
func connError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it has closed the connection", ErrGone)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: it does not read", ErrGone)
	}
	return fmt.Errorf("%w: %w", ErrGone, err)
}

// replyError is the error of an answer that says no, or nil.
func replyError(r *request, m wire.Message) error {
	rc, ok := m.Get("rc")
	if !ok || rc == "0" {
		return nil
	}
	why := "rc=" + rc
	for _, key := range []string{"msg", "errmsg"} {
		if text, ok := m.Get(key); ok {
			why += ", " + strings.ReplaceAll(text, "_", " ")
		}
	}
	return fmt.Errorf("the process manager refuses %q: %s", r.message, why)
}
