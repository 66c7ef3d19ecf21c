package sdpcat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/sdp"
)

// Options say whom to talk to.
type Options struct {
	rdmacm.DeviceSource

	Listen bool         // -l: wait for one connection at At, instead of dialing it
	Addr   sockets.Addr // the peer, or where it comes to
	SDP    sdp.Options

	In  io.Reader // what is sent; its end is passed on
	Out io.Writer // gets what comes
	Log io.Writer // -v: says what happens; may be nil

	Listening func(net.Addr) // hears where a listener waits; may be nil
}

// deliverTimeout is how long the peer may take, after everything has ended, for the last
// that was sent.
const deliverTimeout = time.Minute

// resetTimeout is how long it may take to tell the peer of an end that the user wants.
const resetTimeout = time.Second

// Run is one connection. It returns when both directions have ended, or one has
// failed; what In blocks in is not waited for then.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.DeviceSource.Check(); err != nil {
		return err
	}
	s := sockets.New(o.DeviceSource, o.SDP)
	defer func() {
		from, patience := ctx, deliverTimeout
		if ctx.Err() != nil { // the connection was reset, and the peer is being told
			from, patience = context.WithoutCancel(ctx), resetTimeout
		}
		last, cancel := context.WithTimeout(from, patience)
		defer cancel()
		err = errors.Join(err, s.Close(last))
	}()
	c, err := o.connectPeer(ctx, s)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		_ = c.SetLinger(0) // the peer is to know that it has not got everything
		c.Close()
	})()
	o.logf("connected to %v", sockets.FormatAddr(c.RemoteAddr()))
	in, out := make(chan directionResult, 1), make(chan directionResult, 1)
	go func() { in <- o.sendInput(c) }()
	go func() {
		n, err := io.Copy(o.Out, c)
		out <- directionResult{n, err}
	}()
	err = o.waitDirections(ctx, in, out)
	if err != nil {
		_ = c.SetLinger(0)
	}
	if e := c.Close(); err == nil && ctx.Err() == nil {
		err = e
	}
	return err
}

// directionResult is how a direction has ended.
type directionResult struct {
	bytes int64
	err   error
}

// waitDirections waits for both directions, or for one that fails.
func (o *Options) waitDirections(ctx context.Context, in, out <-chan directionResult) error {
	for in != nil || out != nil {
		var r directionResult
		select {
		case r = <-in:
			in = nil
			o.logf("sent %d bytes", r.bytes)
		case r = <-out:
			out = nil
			o.logf("received %d bytes", r.bytes)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// sendInput sends what there is to read, and its end.
func (o *Options) sendInput(c sockets.Conn) directionResult {
	n, err := io.Copy(c, o.In)
	if err == nil {
		err = c.CloseWrite()
	}
	return directionResult{n, err}
}

// connectPeer dials the peer, or waits for one.
func (o *Options) connectPeer(ctx context.Context, s *sockets.Sockets) (sockets.Conn, error) {
	if !o.Listen {
		return s.Dial(ctx, o.Addr)
	}
	l, err := s.Listen(ctx, o.Addr)
	if err != nil {
		return nil, err
	}
	defer l.Close() // nobody else
	o.logf("listening at %v", sockets.FormatAddr(l.Addr()))
	if o.Listening != nil {
		o.Listening(l.Addr())
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	c, err := l.Accept()
	switch {
	case ctx.Err() != nil:
		if err == nil {
			c.Close()
		}
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	return c.(sockets.Conn), nil
}

func (o *Options) logf(format string, args ...any) {
	if o.Log != nil {
		fmt.Fprintf(o.Log, format+"\n", args...)
	}
}
