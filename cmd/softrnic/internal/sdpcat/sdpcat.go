// Package sdpcat is netcat over SDP: it sends its input to the peer and writes the peer's
// data to its output.
//
//	err := sdpcat.Run(ctx, sdpcat.Options{
//		DeviceSource: source,
//		Addr:         sockets.Addr{Network: "sdp", Host: "192.0.2.1", Port: 7471},
//		In:           os.Stdin, Out: os.Stdout,
//	})
//
// The end of one direction half-closes the connection; the other continues.
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

// Options describe the peer and the streams.
type Options struct {
	rdmacm.DeviceSource

	Listen bool         // -l: accept one connection at Addr instead of dialing it
	Addr   sockets.Addr // the peer, or the address to listen at
	SDP    sdp.Options

	In  io.Reader // the data to send; its end half-closes the connection
	Out io.Writer // receives the peer's data
	Log io.Writer // -v: receives messages; may be nil

	Listening func(net.Addr) // is called with the listener's address; may be nil
}

// deliverTimeout is the time to deliver sent data after both directions have ended.
const deliverTimeout = time.Minute

// resetTimeout is the time to deliver a reset after an interrupt.
const resetTimeout = time.Second

// Run runs one connection. It returns when both directions have ended or one has failed, without
// waiting for a blocked read of In.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.DeviceSource.Check(); err != nil {
		return err
	}
	s := sockets.New(o.DeviceSource, o.SDP)
	defer func() {
		from, timeout := ctx, deliverTimeout
		if ctx.Err() != nil { // the reset still has to be delivered
			from, timeout = context.WithoutCancel(ctx), resetTimeout
		}
		last, cancel := context.WithTimeout(from, timeout)
		defer cancel()
		err = errors.Join(err, s.Close(last))
	}()
	c, err := o.connectPeer(ctx, s)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		_ = c.SetLinger(0) // the peer must not take the end for a complete stream
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

// A directionResult is the end of one direction.
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

// sendInput sends In and half-closes the connection.
func (o *Options) sendInput(c sockets.Conn) directionResult {
	n, err := io.Copy(c, o.In)
	if err == nil {
		err = c.CloseWrite()
	}
	return directionResult{n, err}
}

// connectPeer dials the peer or accepts one connection.
func (o *Options) connectPeer(ctx context.Context, s *sockets.Sockets) (sockets.Conn, error) {
	if !o.Listen {
		return s.Dial(ctx, o.Addr)
	}
	l, err := s.Listen(ctx, o.Addr)
	if err != nil {
		return nil, err
	}
	defer l.Close() // accepts one connection only
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
