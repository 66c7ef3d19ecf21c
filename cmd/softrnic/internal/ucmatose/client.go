package ucmatose

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// client connects and returns the received messages.
func (r *runner) client(ctx context.Context) (err error) {
	r.Say("cmatose: starting client")
	at, addr, err := r.Towards(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.nodes.Close(), at.Close()) }()
	defer r.disconnect(ctx)
	r.Say("cmatose: connecting")
	if err := r.dial(ctx, at, addr); err != nil {
		return err
	}
	playing, alive, stop := rdmacm.StartTest(ctx, r.IdleTimeout, at.Manager, r.nodes[0].conn.RemoteAdapter())
	defer stop()
	if r.Count > 0 {
		if err := r.receive(playing, alive); err != nil {
			return err
		}
		r.Say("sending replies")
		if err := r.nodes.Each((*node).postSends); err != nil {
			return err
		}
		r.Say("data transfers complete")
	}
	return r.nodes.Each(func(n *node) error { return n.released(playing, alive) })
}

// dial makes all connections.
func (r *runner) dial(ctx context.Context, at *rdmacm.Endpoint, addr netip.AddrPort) error {
	return rdmacm.ForFirstThenEach(ctx, r.Connections, func(ctx context.Context, i int) error {
		n, err := newNode(r.Options, i, at.Device)
		if err != nil {
			return err
		}
		r.nodes[i] = n
		n.conn, err = at.Manager.Dial(ctx, addr, n.qp, cm.DialOptions{
			ConnectOptions: n.connection(), Prepare: n.prepare, PortSpace: r.PortSpace, PrivateData: r.PrivateData(test),
		})
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, rdmacm.ExplainRejection(err, r.Terms(test)))
		}
		return nil
	})
}

// released waits until the server disconnects, which it does when it has got
// everything.
func (n *node) released(ctx context.Context, alive *watch.Watch) error {
	select {
	case <-n.conn.Done():
		alive.Beat()
	case <-ctx.Done():
		return rdmacm.ExplainIdle(context.Cause(ctx), "the server does not disconnect; give both sides the same -C and -S")
	}
	if err := n.conn.Err(); !errors.Is(err, cm.ErrDisconnected) {
		return err
	}
	return nil
}
