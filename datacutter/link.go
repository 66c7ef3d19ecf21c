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
	ctx          context.Context // of the run
	conn         net.Conn
	frames       *frameReader
	peer         Instance
	grace        time.Duration
	partialWrite bool   // a frame went out in part, so no other can follow
	work         Counts // in the current work
	total        Counts
}

// defaultGrace is how long the end of a failed run waits to tell others why, and
// to be told.
const defaultGrace = time.Second

// nextFrame returns the next frame. An abort is a *RemoteError, and the end of the
// connection an error: a stream says bye first.
func (l *link) nextFrame() (frame, error) {
	f, err := l.frames.nextFrame()
	switch {
	case err == io.EOF:
		return f, l.explainError(fmt.Errorf("the connection ended without bye: %w", io.ErrUnexpectedEOF))
	case err != nil:
		return f, l.explainError(err)
	case f.kind == kindAbort:
		return f, &RemoteError{Reason: string(f.payload)}
	}
	return f, nil
}

// writeFrames sends bytes of whole frames.
func (l *link) writeFrames(b []byte) error {
	n, err := l.conn.Write(b)
	if err != nil {
		l.partialWrite = l.partialWrite || 0 < n && n < len(b)
	}
	return err
}

// peerReason looks for the peer's reason when a write failed with err: the peer may
// have said it before it hung up.
func (l *link) peerReason(err error) error {
	if l.ctx.Err() != nil {
		return err
	}
	_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // where that fails, so does the read
	for {
		f, failed := l.frames.nextFrame()
		switch {
		case failed != nil:
			return l.explainError(err)
		case f.kind == kindAbort:
			return &RemoteError{Reason: string(f.payload)}
		}
	}
}

// explainError replaces the error of a connection by the reason of the run's end, if
// it has ended: that is what cut the connection.
func (l *link) explainError(err error) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return err
}

// closeWithAbort tells the peer why the run ended here, if it still listens, and
// closes the connection. Nobody else may use the link any more.
func (l *link) closeWithAbort(reason string) {
	if reason != "" && !l.partialWrite && l.conn.SetDeadline(time.Now().Add(l.grace)) == nil {
		if len(reason) > abortMax {
			reason = reason[:abortMax]
		}
		_ = l.writeFrames(appendFrame(nil, kindAbort, []byte(reason))) // the peer may be gone; it finds out by the close below
	}
	l.conn.Close()
}

// expectFrame takes the next frame, which has to be of a kind.
func (l *link) expectFrame(want kind) error {
	f, err := l.nextFrame()
	if err == nil && f.kind != want {
		err = unexpectedFrame(f.kind, want.String())
	}
	return err
}

func unexpectedFrame(got kind, want string) error {
	return fmt.Errorf("%w: %v where only %s may come", ErrFrame, got, want)
}
