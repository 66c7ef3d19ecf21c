package udaddy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/tools/rdmacm"
	"github.com/softrnic/softrnic/internal/tools/watch"
)

// Run is one run of the program, on either side.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	o.complete()
	r := runner{Options: &o, nodes: make([]*node, o.Connections)}
	part := r.server
	if o.Server != "" {
		part = r.client
	}
	err := part(ctx)
	status := 0
	if err != nil {
		status = 1
	}
	r.say("test complete")
	r.say("return status %d", status)
	return err
}

// runner is a run under way.
type runner struct {
	*Options
	nodes []*node
}

// say writes a line.
func (r *runner) say(format string, args ...any) { fmt.Fprintf(r.Out, format+"\n", args...) }

// each calls do for all nodes, in turn.
func (r *runner) each(do func(*node) error) error {
	for i, n := range r.nodes {
		if err := do(n); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return nil
}

// receive waits for all datagrams and looks at them.
func (r *runner) receive(ctx context.Context, alive *watch.Watch) error {
	r.say("receiving data transfers")
	return r.each(func(n *node) error {
		if err := n.complete(ctx, true, alive.Beat); err != nil {
			return err
		}
		return n.check()
	})
}

// close frees the nodes.
func (r *runner) close() error {
	var errs []error
	for _, n := range r.nodes {
		if n != nil {
			errs = append(errs, n.close())
		}
	}
	return errors.Join(errs...)
}

// skipped tells of an address without an adapter.
func (o *Options) skipped(err error) { fmt.Fprintln(o.Log, err) }

// server tells clients queue pairs and sends back what comes.
func (r *runner) server(ctx context.Context) (err error) {
	r.say("udaddy: starting server")
	bind, err := rdmacm.ResolveOwn(ctx, r.Bind, r.Format)
	if err != nil {
		return fmt.Errorf("-b: %w", err)
	}
	s, err := rdmacm.Datagrams(r.Place, bind, uint16(r.Port), cm.ListenOptions{}, r.skipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(), s.Close()) }()
	r.Listening(s.Addrs())
	a, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	playing, alive := watch.Start(ctx, r.Idle)
	defer alive.Stop()
	for i := 0; ; i++ {
		if err := r.accept(i, a); err != nil {
			return err
		}
		alive.Beat()
		if i == r.Connections-1 {
			break
		}
		if a, err = s.Accept(playing); err != nil {
			return rdmacm.Missing(err, "%d of %d connections are there; give both sides the same -c", i+1, r.Connections)
		}
	}
	if r.Count == 0 {
		return nil
	}
	if err := r.receive(playing, alive); err != nil {
		return err
	}
	r.say("sending replies")
	if err := r.each((*node).postSends); err != nil {
		return err
	}
	if err := r.each(func(n *node) error { return n.complete(playing, false, alive.Beat) }); err != nil {
		return err
	}
	r.say("data transfers complete")
	return nil
}

// accept tells a client queue pair number i.
func (r *runner) accept(i int, a rdmacm.Arrival[*cm.UDRequest]) (err error) {
	if r.nodes[i], err = newNode(r.Options, i, a.End.Device); err != nil {
		r.say("udaddy: failing connection request")
		return errors.Join(err, a.Request.Reject(nil))
	}
	n := r.nodes[i]
	n.qkey = cm.UDQKey
	if err := n.reach(a.Request.RemoteAH()); err != nil {
		return err
	}
	return a.Request.Accept(cm.UDAcceptOptions{UDQueuePair: n.pair()})
}

// client learns the server's queue pairs and sends first.
func (r *runner) client(ctx context.Context) (err error) {
	r.say("udaddy: starting client")
	addr, err := rdmacm.Resolve(ctx, r.Server, r.Format)
	if err != nil {
		return fmt.Errorf("-s: %w", err)
	}
	bind, err := rdmacm.ResolveOwn(ctx, r.Bind, r.Format)
	if err != nil {
		return fmt.Errorf("-b: %w", err)
	}
	at, err := rdmacm.Towards(r.Place, addr, bind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(), at.Close()) }()
	r.say("udaddy: connecting")
	if err := r.dial(ctx, at, netip.AddrPortFrom(addr, uint16(r.Port))); err != nil {
		return err
	}
	if r.Count == 0 {
		return nil
	}
	playing, alive := watch.Start(ctx, r.Idle)
	defer alive.Stop()
	r.say("initiating data transfers")
	if err := r.each((*node).postSends); err != nil {
		return err
	}
	if err := r.receive(playing, alive); err != nil {
		return err
	}
	r.say("data transfers complete")
	return nil
}

// dial asks for all queue pairs.
func (r *runner) dial(ctx context.Context, at *rdmacm.End, addr netip.AddrPort) error {
	return rdmacm.Each(ctx, r.Connections, func(ctx context.Context, i int) error {
		n, err := newNode(r.Options, i, at.Device)
		if err != nil {
			return err
		}
		r.nodes[i] = n
		peer, err := at.Manager.DialUD(ctx, addr, cm.UDDialOptions{UDQueuePair: n.pair()})
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		n.qpn, n.qkey = peer.QPN, peer.QKey
		return n.reach(peer.AH)
	})
}
