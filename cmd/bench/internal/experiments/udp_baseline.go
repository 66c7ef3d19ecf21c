package experiments

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

// newPingSet returns a set with the polling UDP ping-pong as the baseline, and ping-pongs of
// ops, all of size bytes. The caller must call end, also after an error.
func newPingSet(ctx context.Context, pair *verbsbench.Pair, size, iters int, ops ...verbsbench.Op) (l seriesSet, end func(), err error) {
	var open []func()
	end = func() { closeAll(open) }
	base, err := openPing(ctx, udpraw.Spin, size)
	if err != nil {
		return l, end, err
	}
	open = append(open, base.Close)
	l.addPing("udp-spin", base, iters)
	for _, op := range ops {
		ping, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: op, Size: size})
		if err != nil {
			return l, end, fmt.Errorf("%s: %w", op, err)
		}
		open = append(open, func() { ping.Close(ctx) })
		l.addPing(string(op), ping, iters)
	}
	return l, end, nil
}

// newStreamSet returns a set with the UDP packet stream as the baseline, and streams of ops
// with messages of size bytes, in rounds of length d. The caller must call end, also after an
// error.
func newStreamSet(ctx context.Context, pair *verbsbench.Pair, size int, d time.Duration, ops ...verbsbench.Op) (l seriesSet, end func(), err error) {
	var open []func()
	end = func() { closeAll(open) }
	base, err := udpraw.OpenBandwidth(ctx, udpraw.BandwidthOptions{
		Payload: min(size, maxMTU), Offload: udpraw.HasOffload(), RecvBuffer: largeBuffer,
	})
	if err != nil {
		return l, end, err
	}
	open = append(open, base.Close)
	l.addSeries("udp", base.Rounds(d, udpraw.Flow.MBps))
	for _, op := range ops {
		s, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: op, Size: size})
		if err != nil {
			return l, end, fmt.Errorf("%s: %w", op, err)
		}
		open = append(open, func() { s.Close(ctx) })
		l.addSeries(string(op), s.Rounds(d, verbsbench.Flow.MBps))
	}
	return l, end, nil
}

// closeAll calls the functions in reverse order.
func closeAll(open []func()) {
	for i := range open {
		open[len(open)-1-i]()
	}
}
