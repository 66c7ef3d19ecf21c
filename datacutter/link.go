package datacutter

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// link is one connection of a stream, seen from one of its ends. Its methods
// are called by the instance at this end, or by the goroutine that stands in
// for it, one at a time; only the connection's deadlines are set from outside.
type link struct {
	ctx    context.Context // of the run
	conn   net.Conn
	frames *frameReader
	peer   Instance
	grace  time.Duration
	torn   bool   // a frame went out in part, so no other can follow
	work   Counts // in the current work
	total  Counts
}

// defaultGrace is how long the end of a failed run waits to tell others why, and
// to be told.
const defaultGrace = time.Second

// next returns the next frame. An abort is a *RemoteError, and the end of the
// connection an error: a stream says bye first.
func (l *link) next() (frame, error) {
	f, err := l.frames.next()
	switch {
	case err == io.EOF:
		return f, l.explain(fmt.Errorf("the connection ended without bye: %w", io.ErrUnexpectedEOF))
	case err != nil:
		return f, l.explain(err)
	case f.kind == kindAbort:
		return f, &RemoteError{Reason: string(f.payload)}
	}
	return f, nil
}

// write sends bytes of whole frames.
func (l *link) write(b []byte) error {
	n, err := l.conn.Write(b)
	if err != nil {
		l.torn = l.torn || 0 < n && n < len(b)
	}
	return err
}

// why looks for the peer's reason when a write failed with err: the peer may
// have said it before it hung up.
func (l *link) why(err error) error {
	if l.ctx.Err() != nil {
		return err
	}
	_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // where that fails, so does the read
	for {
		f, failed := l.frames.next()
		switch {
		case failed != nil:
			return l.explain(err)
		case f.kind == kindAbort:
			return &RemoteError{Reason: string(f.payload)}
		}
	}
}

// explain replaces the error of a connection by the reason of the run's end, if
// it has ended: that is what cut the connection.
func (l *link) explain(err error) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return err
}

// farewell tells the peer why the run ended here, if it still listens, and
// closes the connection. Nobody else may use the link any more.
func (l *link) farewell(reason string) {
	if reason != "" && !l.torn && l.conn.SetDeadline(time.Now().Add(l.grace)) == nil {
		if len(reason) > abortMax {
			reason = reason[:abortMax]
		}
		_ = l.write(appendFrame(nil, kindAbort, []byte(reason))) // the peer may be gone; it finds out by the close below
	}
	l.conn.Close()
}

// expect takes the next frame, which has to be of a kind.
func (l *link) expect(want kind) error {
	f, err := l.next()
	if err == nil && f.kind != want {
		err = unexpected(f.kind, want.String())
	}
	return err
}

func unexpected(got kind, want string) error {
	return fmt.Errorf("%w: %v where only %s may come", ErrFrame, got, want)
}
