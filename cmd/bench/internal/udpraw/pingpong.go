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

// A Mode is the way in which both ends of a ping-pong wait.
type Mode string

const (
	Spin    Mode = "spin"    // nonblocking reads in a loop: no wake-up
	Block   Mode = "block"   // a blocking read on a locked thread: one wake-up by the kernel
	Netpoll Mode = "netpoll" // Go's net package: the kernel wakes the poller, the poller the goroutine
)

// Modes are those that the system has; Netpoll always is.
func Modes() []Mode { return slices.Clone(modes) }

// rolePinger is both ends of a ping-pong: rank 0 asks, rank 1 answers.
const rolePinger = "pinger"

// warmup is the number of round trips before those that count.
const warmup = 200

type pingArgs struct {
	Mode Mode
	Size int
}

func init() { proc.Register(worker, rolePinger, servePingPong) }

// A PingPong is a session of two processes that send one packet to and fro when
// they are asked for a round. For one goroutine.
type PingPong struct{ g *proc.Group }

// OpenPingPong starts the two processes. Packets have size bytes of UDP
// payload, headers included. The caller closes the session.
func OpenPingPong(ctx context.Context, mode Mode, size int) (*PingPong, error) {
	if !slices.Contains(modes, mode) {
		return nil, fmt.Errorf("udpraw: no ping-pong mode %q on %s; there are: %v", mode, runtime.GOOS, modes)
	}
	if size < 1 || size > maxDatagram {
		return nil, fmt.Errorf("udpraw: a ping of %d bytes is not a datagram (1 to %d)", size, maxDatagram)
	}
	end := proc.Spec{Name: worker, Role: rolePinger, Args: pingArgs{mode, size}}
	g, err := proc.Start(ctx, proc.Options{Pin: true}, end, end)
	if err != nil {
		return nil, err
	}
	return &PingPong{g}, nil
}

// Round does iters round trips and returns half of each one's time.
func (p *PingPong) Round(ctx context.Context, iters int) (*measure.Latency, error) {
	ends, err := proc.Call[int, *measure.Latency](ctx, p.g, iters)
	if err != nil {
		return nil, err
	}
	return ends[0], nil
}

// LatencyRounds is Round as measure.Alternate takes it; the figure is the median in
// microseconds. All that is measured is added to into, unless that is nil.
func (p *PingPong) LatencyRounds(iters int, into *measure.Latency) measure.Round {
	return func(ctx context.Context) (float64, error) {
		l, err := p.Round(ctx, iters)
		if err != nil {
			return 0, err
		}
		if into != nil {
			into.Merge(l)
		}
		return l.Median(), nil
	}
}

// Close ends both processes. Closing twice is safe.
func (p *PingPong) Close() { p.g.Close() }

func servePingPong(ctx context.Context, w *proc.Worker) error {
	a, err := proc.Args[pingArgs](w)
	if err != nil {
		return err
	}
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

// spinReceive reads until something is there. A peer that is on the other core answers
// within some ten reads; after many more it yields, and looks at the clock now
// and then.
func spinReceive(s socket, b []byte) (int, error) {
	const restless, glance = 1 << 5, 1 << 14
	var deadline time.Time
	for i := 1; ; i++ {
		if n, err := s.tryReceive(b); n > 0 || err != nil {
			return n, err
		}
		if i%restless == 0 {
			sched.Yield()
		}
		if i%glance != 0 {
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
