package sdpbench

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

const roleIdle = "idle"

// idleArgs are the arguments of the two processes of an Idle.
type idleArgs struct {
	Transport   Transport
	Connections int
}

func init() { proc.RegisterArgs(worker, roleIdle, serveIdle) }

// serveIdle opens connections, in each of which a goroutine waits for data.
func serveIdle(ctx context.Context, w *proc.Worker, a idleArgs) error {
	var listen func() (net.Listener, listenInfo, error)
	var dial func(listenInfo) (net.Conn, error)
	if a.Transport == TCP {
		listen, dial = listenTCP, func(to listenInfo) (net.Conn, error) { return dialTCP(ctx, to) }
	} else {
		dev, stack, disconnect, err := openStack(Config{Transport: a.Transport})
		if err != nil {
			return err
		}
		defer disconnect()
		listen = func() (net.Listener, listenInfo, error) { l, i, err := listenSDP(dev, stack); return l, i, err }
		dial = func(to listenInfo) (net.Conn, error) { return dialSDP(ctx, stack, to) }
	}
	l, mine, err := listen()
	if err != nil {
		return err
	}
	defer l.Close()
	infos, err := proc.Exchange(ctx, w, mine)
	if err != nil {
		return err
	}
	for range a.Connections {
		var c net.Conn
		if w.Rank == 1 {
			c, err = l.Accept()
		} else {
			c, err = dial(infos[1])
		}
		if err != nil {
			return err
		}
		defer c.Close()
		go c.Read(make([]byte, 1)) // until Close
	}
	return proc.Serve(ctx, w, measure.IdleUsage)
}

// Idle is two processes with idle connections between them.
type Idle struct{ *proc.Group }

// OpenIdle starts the processes and opens the connections. The caller must close the session.
func OpenIdle(ctx context.Context, t Transport, connections int) (*Idle, error) {
	end := proc.Spec{Name: worker, Role: roleIdle, Args: idleArgs{t, connections}}
	g, err := proc.Start(ctx, proc.Options{Timeout: roundTimeout}, end, end)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return &Idle{g}, nil
}

// Usage returns the usage of each process while it waits for d.
func (i *Idle) Usage(ctx context.Context, d time.Duration) ([]measure.Usage, error) {
	return proc.Call[time.Duration, measure.Usage](ctx, i.Group, d)
}
