package cmtool

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// A Service is the transport service of the queue pairs, which makes the program.
type Service int

const (
	RC Service = iota // reliable connections: ucmatose
	UD                // unreliable datagrams: udaddy
)

// test returns the name of the test in the parameters.
func (s Service) test() string {
	if s == UD {
		return "udaddy"
	}
	return "ucmatose"
}

// name returns the program's name in the output of the original.
func (s Service) name() string {
	if s == UD {
		return "udaddy"
	}
	return "cmatose"
}

// message returns the noun of a message.
func (s Service) message() string {
	if s == UD {
		return "datagram"
	}
	return "message"
}

const grhLen = 40 // bytes of the GRH before a datagram

// A service is a server's side of a Service. R is the type of its requests.
type service[R rdmacm.Request] struct {
	listen  func(rdmacm.DeviceSource, netip.Addr, uint16, cm.ListenOptions, func(error)) (*rdmacm.Server[R], error)
	adapter func(R) netip.AddrPort // of the client
	accept  func(*node, context.Context, R) error
	reject  func(R) error // for lack of resources
}

var (
	rcService = service[*cm.Request]{
		listen:  rdmacm.Listen,
		adapter: (*cm.Request).RemoteAdapter,
		accept:  (*node).acceptRC,
		reject:  func(r *cm.Request) error { return r.Reject(cm.NoResources, nil) },
	}
	udService = service[*cm.UDRequest]{
		listen:  rdmacm.ListenUD,
		adapter: func(r *cm.UDRequest) netip.AddrPort { return rdmacm.AdapterAddr(r.RemoteAH()) },
		accept:  (*node).acceptUD,
		reject:  func(r *cm.UDRequest) error { return r.Reject(cm.UDReject, nil) },
	}
)

// acceptRC accepts a request for a connection.
func (n *node) acceptRC(ctx context.Context, r *cm.Request) (err error) {
	n.conn, err = r.Accept(ctx, n.qp, cm.AcceptOptions{ConnectOptions: n.connectOptions(), Prepare: n.postReceives})
	return err
}

// dialRC connects to a server.
func (n *node) dialRC(ctx context.Context, m *cm.Manager, addr netip.AddrPort, private []byte) (err error) {
	n.conn, err = m.Dial(ctx, addr, n.qp, cm.DialOptions{
		ConnectOptions: n.connectOptions(), Prepare: n.postReceives, PortSpace: n.PortSpace, PrivateData: private,
	})
	if err == nil {
		n.adapter = n.conn.RemoteAdapter()
	}
	return err
}

// connectOptions returns the attributes of a connection.
func (n *node) connectOptions() verbs.ConnectOptions {
	return verbs.ConnectOptions{Retries: 5, MaxRdAtomic: 1, MaxDestRdAtomic: 1, TrafficClass: n.TOS, AckTimeout: n.AckTimeout.AckTimeout()}
}

// checkRC returns an error for a completion on a connection. It is flushed if the connection has
// ended.
func (n *node) checkRC(ctx context.Context, wc *verbs.WC) error {
	switch {
	case wc.Status == verbs.WCLocLenErr:
		return fmt.Errorf("message longer than %d bytes; give both sides the same -S: %w", n.Size, wc.Err())
	case wc.Status == verbs.WCWRFlushErr:
		select {
		case <-n.conn.Done():
			return fmt.Errorf("%w before all messages were received; give both sides the same -C and -S", n.conn.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return wc.Err()
}

// awaitDisconnect waits until the server disconnects, after it has received everything.
func (n *node) awaitDisconnect(ctx context.Context, alive *watch.Watch) error {
	if n.Service == UD {
		return nil
	}
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

// acceptUD sends a client the number of the queue pair.
func (n *node) acceptUD(_ context.Context, r *cm.UDRequest) error {
	n.qkey = cm.UDQKey
	if err := n.createAH(r.RemoteAH()); err != nil {
		return err
	}
	return r.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QP: n.qp, Prepare: n.postReceives}})
}

// dialUD requests a queue pair of the server.
func (n *node) dialUD(ctx context.Context, m *cm.Manager, addr netip.AddrPort, private []byte) error {
	peer, err := m.DialUD(ctx, addr, cm.UDDialOptions{UDQueuePair: cm.UDQueuePair{QP: n.qp, Prepare: n.postReceives}, PrivateData: private})
	if err != nil {
		return err
	}
	n.adapter = netip.AddrPortFrom(addr.Addr(), rdmacm.RoCEPort)
	n.qpn, n.qkey = peer.QPN, peer.QKey
	return n.createAH(peer.AH)
}

// createAH creates the address handle of the peer.
func (n *node) createAH(a verbs.AHAttr) (err error) {
	a.TrafficClass = n.TOS
	n.ah, err = n.pd.CreateAH(a)
	return err
}

// fromPeer reports whether a datagram is the peer's, and wanted: it carries the number of the
// queue pair that it comes from, always the same.
func (n *node) fromPeer(wc *verbs.WC) bool {
	return wc.Flags&verbs.WCWithImm != 0 && wc.Imm == wc.SrcQPN && (n.qpn == 0 || n.qpn == wc.SrcQPN) && len(n.received) < n.Count
}
