package udaddy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// Run runs the program on either side.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	r := runner{Options: &o, nodes: make(cmtool.Nodes[*node], o.Connections)}
	return o.Run(ctx, r.server, r.client)
}

// A runner is the state of a run.
type runner struct {
	*Options
	nodes cmtool.Nodes[*node]
}

// receive waits for all datagrams and looks at them.
func (r *runner) receive(ctx context.Context, alive *watch.Watch) error {
	r.Say("receiving data transfers")
	return r.nodes.Each(func(n *node) error {
		if err := n.complete(ctx, true, alive.Beat); err != nil {
			return err
		}
		return n.check()
	})
}

// server assigns queue pairs to clients and returns the received datagrams.
func (r *runner) server(ctx context.Context) (err error) {
	r.Say("udaddy: starting server")
	bind, err := r.Own(ctx)
	if err != nil {
		return err
	}
	s, err := rdmacm.ListenUD(r.DeviceSource, bind, uint16(r.Port), cm.ListenOptions{}, r.Skipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.nodes.Close(), s.Close()) }()
	r.Listening(s.Addrs())
	a, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	playing, alive, stop := rdmacm.StartTest(ctx, r.IdleTimeout, a.Endpoint.Manager, rdmacm.AdapterAddr(a.Request.RemoteAH()))
	defer stop()
	for i := 0; ; i++ {
		if err := r.accept(i, a); err != nil {
			return err
		}
		alive.Beat()
		if i == r.Connections-1 {
			break
		}
		if a, err = s.Accept(playing); err != nil {
			return rdmacm.ExplainIdle(err, "%d of %d connections established; give both sides the same -c", i+1, r.Connections)
		}
	}
	if r.Count == 0 {
		return nil
	}
	if err := r.receive(playing, alive); err != nil {
		return err
	}
	r.Say("sending replies")
	if err := r.nodes.Each((*node).postSends); err != nil {
		return err
	}
	if err := r.nodes.Each(func(n *node) error { return n.complete(playing, false, alive.Beat) }); err != nil {
		return err
	}
	r.Say("data transfers complete")
	return nil
}

// accept tells a client queue pair number i.
func (r *runner) accept(i int, a rdmacm.Incoming[*cm.UDRequest]) (err error) {
	if err := r.RejectMisfit(a.Request, test); err != nil {
		return err
	}
	if r.nodes[i], err = newNode(r.Options, i, a.Endpoint.Device); err != nil {
		r.Say("udaddy: failing connection request")
		return errors.Join(err, a.Request.Reject(cm.UDReject, nil))
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
	r.Say("udaddy: starting client")
	at, addr, err := r.Towards(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.nodes.Close(), at.Close()) }()
	r.Say("udaddy: connecting")
	if err := r.dial(ctx, at, addr); err != nil {
		return err
	}
	if r.Count == 0 {
		return nil
	}
	playing, alive, stop := rdmacm.StartTest(ctx, r.IdleTimeout, at.Manager, netip.AddrPortFrom(addr.Addr(), rdmacm.RoCEPort))
	defer stop()
	r.Say("initiating data transfers")
	if err := r.nodes.Each((*node).postSends); err != nil {
		return err
	}
	if err := r.receive(playing, alive); err != nil {
		return err
	}
	r.Say("data transfers complete")
	return nil
}

// dial asks for all queue pairs.
func (r *runner) dial(ctx context.Context, at *rdmacm.Endpoint, addr netip.AddrPort) error {
	return rdmacm.ForFirstThenEach(ctx, r.Connections, func(ctx context.Context, i int) error {
		n, err := newNode(r.Options, i, at.Device)
		if err != nil {
			return err
		}
		r.nodes[i] = n
		peer, err := at.Manager.DialUD(ctx, addr, cm.UDDialOptions{UDQueuePair: n.pair(), PrivateData: r.PrivateData(test)})
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, rdmacm.ExplainRejection(err, r.Terms(test)))
		}
		n.qpn, n.qkey = peer.QPN, peer.QKey
		return n.reach(peer.AH)
	})
}
