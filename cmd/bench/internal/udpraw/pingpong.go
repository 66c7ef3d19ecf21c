package udpraw

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/internal/sched"
)

// A Mode is the way in which both sides of a ping-pong wait.
type Mode string

const (
	Spin    Mode = "spin"    // nonblocking reads in a loop, without a wake-up
	Block   Mode = "block"   // a blocking read on a locked thread, with one wake-up by the kernel
	Netpoll Mode = "netpoll" // package net: the kernel wakes the netpoller, which wakes the goroutine
)

// Modes returns the modes that the system supports, always including Netpoll.
func Modes() []Mode { return slices.Clone(modes) }

// rolePinger is the role of both sides of a ping-pong: rank 0 sends, rank 1 replies.
const rolePinger = "pinger"

// warmup is the number of round trips that are not measured.
const warmup = 200

type pingArgs struct {
	Mode Mode
	Size int
}

func init() { proc.RegisterArgs(worker, rolePinger, servePingPong) }

// A PingPong is a session of two processes that exchange one packet back and forth on request.
// It is used by one goroutine only.
type PingPong struct{ *proc.Group }

// OpenPingPong starts the two processes. Packets have size bytes of UDP payload, including
// headers. The caller must close the session.
func OpenPingPong(ctx context.Context, mode Mode, size int) (*PingPong, error) {
	if !slices.Contains(modes, mode) {
		return nil, fmt.Errorf("udpraw: unknown ping-pong mode %q on %s; known modes: %v", mode, runtime.GOOS, modes)
	}
	if size < 1 || size > maxDatagram {
		return nil, fmt.Errorf("udpraw: ping of %d bytes: want 1 to %d", size, maxDatagram)
	}
	end := proc.Spec{Name: worker, Role: rolePinger, Args: pingArgs{mode, size}}
	g, err := proc.Start(ctx, proc.Options{Pin: true}, end, end)
	if err != nil {
		return nil, err
	}
	return &PingPong{g}, nil
}

// Round runs iters round trips and returns half of each round-trip time.
func (p *PingPong) Round(ctx context.Context, iters int) (*measure.Latency, error) {
	return proc.CallFirst[int, *measure.Latency](ctx, p.Group, iters)
}

// LatencyRounds returns Round for measure.Alternate. The figure is the median in microseconds.
// All times are added to into, unless it is nil.
func (p *PingPong) LatencyRounds(iters int, into *measure.Latency) measure.Round {
	return measure.MedianRounds(into, func(ctx context.Context) (*measure.Latency, error) { return p.Round(ctx, iters) })
}

func servePingPong(ctx context.Context, w *proc.Worker, a pingArgs) error {
	open := openSocket
	if a.Mode == Netpoll {
		open = openNetSocket
	} else {
		runtime.LockOSThread()
	}
	s, err := open(socketOptions{})
	if err != nil {
		return err
	}
	defer s.close()
	addrs, err := proc.Exchange(ctx, w, s.localAddr())
	if err != nil {
		return err
	}
	s.setPeer(addrs[1-w.Rank])

	receive := s.receiveBlocking
	if a.Mode == Spin {
		receive = func(b []byte) (int, error) { return spinReceive(s, b) }
	}
	buf := make([]byte, a.Size)
	return proc.Serve(ctx, w, func(ctx context.Context, iters int) (*measure.Latency, error) {
		if w.Rank == 0 {
			return pingRounds(ctx, s, receive, buf, iters)
		}
		return measure.NewLatency(), pongRounds(ctx, s, receive, buf, iters)
	})
}

func pingRounds(ctx context.Context, s socket, receive func([]byte) (int, error), buf []byte, iters int) (*measure.Latency, error) {
	half := measure.NewLatency()
	last := time.Now()
	for i := range warmup + iters {
		if err := s.sendSegments(buf, len(buf)); err != nil {
			return nil, err
		}
		if _, err := receive(buf); err != nil {
			return nil, err
		}
		now := time.Now()
		if i >= warmup {
			half.Record(now.Sub(last) / 2)
		}
		last = now
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return half, nil
}

func pongRounds(ctx context.Context, s socket, receive func([]byte) (int, error), buf []byte, iters int) error {
	for range warmup + iters {
		if _, err := receive(buf); err != nil {
			return err
		}
		if err := s.sendSegments(buf, len(buf)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// spinReceive polls until a packet arrives. A peer on another core replies within about ten
// reads. After many more, spinReceive yields the processor and checks the time periodically.
func spinReceive(s socket, b []byte) (int, error) {
	const readsPerYield, readsPerClock = 1 << 5, 1 << 14
	var deadline time.Time
	for i := 1; ; i++ {
		if n, err := s.tryReceive(b); n > 0 || err != nil {
			return n, err
		}
		if i%readsPerYield == 0 {
			sched.Yield()
		}
		if i%readsPerClock != 0 {
			continue
		}
		switch now := time.Now(); {
		case deadline.IsZero():
			deadline = now.Add(receiveTimeout)
		case now.After(deadline):
			return 0, errTimeout
		}
	}
}
