package datacutter

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// link is one end of a stream's connection. Its methods are called by one goroutine at a time: that of the
// instance, or its reader. Only the connection's deadlines are set concurrently.
type link struct {
	ctx          context.Context // of the run
	conn         net.Conn
	frames       *frameReader
	peer         Instance
	grace        time.Duration
	partialWrite bool   // a frame was sent in part, so no other may follow
	work         Counts // counts of the current work
	total        Counts
}

// defaultGrace is the time that a failed run waits to exchange the reasons with other hosts.
const defaultGrace = time.Second

// nextFrame returns the next frame. An abort is returned as a *RemoteError. The end of the connection without
// bye is an error.
func (l *link) nextFrame() (frame, error) {
	f, err := l.frames.nextFrame()
	switch {
	case err == io.EOF:
		return f, l.explainError(fmt.Errorf("connection closed without bye: %w", io.ErrUnexpectedEOF))
	case err != nil:
		return f, l.explainError(err)
	case f.kind == kindAbort:
		return f, &RemoteError{Reason: string(f.payload)}
	}
	return f, nil
}

// writeFrames sends complete frames.
func (l *link) writeFrames(b []byte) error {
	n, err := l.conn.Write(b)
	if err != nil {
		l.partialWrite = l.partialWrite || 0 < n && n < len(b)
	}
	return err
}

// peerReason reads the peer's abort after a write has failed with err, and returns err if there is none.
func (l *link) peerReason(err error) error {
	if l.ctx.Err() != nil {
		return err
	}
	_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // if it fails, so does the read
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

// explainError replaces a connection error by the cause of the run's end, if the run has ended, because that
// interrupted the connection.
func (l *link) explainError(err error) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return err
}

// closeWithAbort sends the reason to the peer, if not empty, and closes the connection. The link must not be
// used afterwards.
func (l *link) closeWithAbort(reason string) {
	if reason != "" && !l.partialWrite && l.conn.SetDeadline(time.Now().Add(l.grace)) == nil {
		if len(reason) > abortMax {
			reason = reason[:abortMax]
		}
		_ = l.writeFrames(appendFrame(nil, kindAbort, []byte(reason))) // ignore the error: closing notifies the peer as well
	}
	l.conn.Close()
}

// expectFrame reads the next frame, which must be of the kind want.
func (l *link) expectFrame(want kind) error {
	f, err := l.nextFrame()
	if err == nil && f.kind != want {
		err = unexpectedFrame(f.kind, want.String())
	}
	return err
}

// unexpectedFrame returns the error for a frame that violates the protocol.
func unexpectedFrame(got kind, want string) error {
	return fmt.Errorf("%w: got %v, want %s", ErrFrame, got, want)
}
