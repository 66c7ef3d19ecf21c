package peers

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

const roleTCP = "tcp"

// TCP is a session of two processes with a connection of Go's net package: the baseline without
// an adapter.
type TCP struct{ *proc.Group }

type tcpArgs struct{ Size int }

// A tcpOrder requests iters round trips, or a stream of bytes.
type tcpOrder struct {
	Iters int
	Bytes int
}

func init() { proc.RegisterArgs(worker, roleTCP, serveTCP) }

// OpenTCP starts the two processes. Messages have size bytes. The caller must close the
// session.
func OpenTCP(ctx context.Context, size int) (*TCP, error) {
	end := proc.Spec{Name: worker, Role: roleTCP, Args: tcpArgs{size}}
	g, err := proc.Start(ctx, proc.Options{Pin: true}, end, end)
	if err != nil {
		return nil, err
	}
	return &TCP{g}, nil
}

// Latency returns half a round trip in microseconds, the median of iters.
func (s *TCP) Latency(ctx context.Context, iters int) (float64, error) {
	return proc.CallFirst[tcpOrder, float64](ctx, s.Group, tcpOrder{Iters: iters})
}

// Bandwidth returns the bandwidth of a one-way stream of bytes, in MB/s.
func (s *TCP) Bandwidth(ctx context.Context, bytes int) (float64, error) {
	return proc.CallFirst[tcpOrder, float64](ctx, s.Group, tcpOrder{Bytes: bytes})
}

func serveTCP(ctx context.Context, w *proc.Worker, a tcpArgs) error {
	c, err := connectTCP(ctx, w)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	buf := make([]byte, a.Size)
	return proc.Serve(ctx, w, func(_ context.Context, o tcpOrder) (float64, error) {
		if o.Iters > 0 {
			return pingTCP(c, buf, w.Rank == 0, o.Iters)
		}
		return streamTCP(c, buf, w.Rank == 0, o.Bytes)
	})
}

// connectTCP connects the two processes. Rank 1 listens.
func connectTCP(ctx context.Context, w *proc.Worker) (net.Conn, error) {
	addr := ""
	var l net.Listener
	if w.Rank == 1 {
		var err error
		if l, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		defer l.Close()
		addr = l.Addr().String()
	}
	addrs, err := proc.Exchange(ctx, w, addr)
	if err != nil {
		return nil, err
	}
	if w.Rank == 1 {
		return l.Accept()
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp4", addrs[1])
}

// pingTCP runs iters round trips and returns the median of half a round trip.
func pingTCP(c net.Conn, buf []byte, first bool, iters int) (float64, error) {
	half := measure.NewLatency()
	for range iters {
		start := time.Now()
		if first {
			if _, err := c.Write(buf); err != nil {
				return 0, err
			}
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			return 0, err
		}
		if !first {
			if _, err := c.Write(buf); err != nil {
				return 0, err
			}
		}
		half.Record(time.Since(start) / 2)
	}
	return half.Median(), nil
}

// streamTCP sends total bytes in messages. The receiver acknowledges the end with one byte.
func streamTCP(c net.Conn, buf []byte, first bool, total int) (float64, error) {
	start, moved, one := time.Now(), 0, make([]byte, 1)
	for ; moved < total; moved += len(buf) {
		var err error
		if first {
			_, err = c.Write(buf)
		} else {
			_, err = io.ReadFull(c, buf)
		}
		if err != nil {
			return 0, err
		}
	}
	var err error
	if first {
		_, err = io.ReadFull(c, one)
	} else {
		_, err = c.Write(one)
	}
	return float64(moved) / 1e6 / time.Since(start).Seconds(), err
}
