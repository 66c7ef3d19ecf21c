package perftest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/verbs"
)

// connectCM connects the queue pairs by RDMA-CM, one after the other. The client dials; the server
// uses the listener of the channel.
func (r *runner) connectCM(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.HandshakeTimeout)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if c, ok := r.handshake.channel.(*cmChannel); ok { // a peer that has left does not connect any more
		c.conn.AfterDone(func() { fail(oob.ErrPeerClosed) })
		defer c.conn.AfterDone(nil)
	}
	for i := range r.endpoint.qps {
		var err error
		switch {
		case r.Connection == verbs.UD:
			err = r.exchangeUD(ctx, i)
		case r.Server != "":
			err = r.dialQP(ctx, i)
		default:
			err = r.acceptQP(ctx, i)
		}
		if err != nil && errors.Is(context.Cause(ctx), oob.ErrPeerClosed) {
			err = oob.ErrPeerClosed
		}
		if err != nil {
			return r.handshake.peerError("connect to its queue pairs", err)
		}
	}
	return nil
}

// usesCM reports whether the handshake uses RDMA-CM.
func (p *plan) usesCM() bool { return p.RDMACM || p.CommRDMACM }

// dialCM connects to the server's port of RDMA-CM.
func (r *runner) dialCM(ctx context.Context) (channel, error) {
	ip, err := rdmacm.Resolve(ctx, r.Server, "")
	if err != nil {
		return nil, err
	}
	if r.cmEndpoint, err = rdmacm.OpenClient(rdmacm.DeviceSource{Device: r.Device, Open: r.Open}, ip, r.Bind); err != nil {
		return nil, err
	}
	r.dev, r.manager = r.cmEndpoint.Device, r.cmEndpoint.Manager
	r.serverAddr = netip.AddrPortFrom(ip, uint16(r.Port))
	c, err := newCMChannel(ctx, r.cmEndpoint, r.plan)
	if err != nil {
		return nil, err
	}
	if err := c.dialServer(r.serverAddr); err != nil {
		return nil, errors.Join(&oob.PeerError{Peer: r.serverAddr.String(), Op: "connect", Err: err}, c.free())
	}
	return c, nil
}

// listenCM listens on a port of RDMA-CM, at every address of the machine unless Bind is set.
func (r *runner) listenCM() (port int, accept func(context.Context) (clientChannel, error), stop func(), err error) {
	skipped := func(err error) { fmt.Fprintf(r.Log, "The RDMA CM does not listen everywhere: %v\n", err) }
	r.cmServer, err = rdmacm.Listen(rdmacm.DeviceSource{Device: r.Device, Open: r.Open}, r.Bind, uint16(r.Port), cm.ListenOptions{}, skipped)
	if err != nil {
		return 0, nil, nil, err
	}
	accept = func(ctx context.Context) (clientChannel, error) {
		a, err := r.cmServer.Accept(ctx)
		if err != nil {
			return nil, err
		}
		c, err := newCMChannel(ctx, a.Endpoint, r.plan)
		if err != nil {
			return nil, err
		}
		c.request, c.peerName = a.Request, a.Request.RemoteAddr().String()
		return c, nil
	}
	return int(r.cmServer.Addrs()[0].Port()), accept, func() { r.cmServer.Stop() }, nil
}

// useCMChannel continues with a client that has connected by RDMA-CM.
func (r *runner) useCMChannel(c *cmChannel) (err error) {
	r.cmClient, r.dev, r.manager = c, c.endpoint.Device, c.endpoint.Manager
	if r.RDMACM && r.Connection == verbs.UD {
		r.udListener, err = r.manager.ListenUD(c.conn.LocalAddr().Port(), cm.ListenOptions{})
	}
	return err
}

// connectOptions returns the attributes of a queue pair for data with -R.
func (e *endpoint) connectOptions() verbs.ConnectOptions {
	o := verbs.ConnectOptions{MTU: e.mtu, Access: e.access, AckTimeout: timeoutOption(e.QPTimeout), Retries: countOption(e.RetryCount), RNRRetries: countOption(e.RetryCount),
		TrafficClass: uint8(max(e.TOS, 0)), MaxRdAtomic: -1, MaxDestRdAtomic: -1}
	if e.Test.fetches() {
		o.MaxRdAtomic, o.MaxDestRdAtomic = e.OutReads, e.OutReads
	}
	if e.access == 0 {
		o.Access = verbs.AccessLocalWrite // none for the peer
	}
	return o
}

// The original's server listens again only after it has told the client that it is
// ready, so its first replies may be rejections.
const (
	dialTries = 20
	dialPause = 100 * time.Millisecond
)

// retryUntilListening calls f until the peer no longer rejects it for lack of a listener.
func retryUntilListening(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		var refused *cm.RejectError
		var refusedUD *cm.UDRejectError
		early := errors.As(err, &refused) && refused.Reason == cm.InvalidServiceID || errors.As(err, &refusedUD)
		if !early || try == dialTries {
			return err
		}
		select {
		case <-time.After(dialPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *runner) dialQP(ctx context.Context, i int) error {
	return retryUntilListening(ctx, func() error {
		if r.endpoint.qps[i].State() != verbs.StateInit { // the try before
			if err := r.endpoint.qps[i].Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState); err != nil {
				return err
			}
		}
		conn, err := r.manager.Dial(ctx, r.serverAddr, r.endpoint.qps[i], cm.DialOptions{ConnectOptions: r.endpoint.connectOptions()})
		if err == nil {
			r.conns = append(r.conns, conn)
		}
		return err
	})
}

func (r *runner) acceptQP(ctx context.Context, i int) error {
	q, err := r.nextRequest(ctx)
	if err != nil {
		return err
	}
	conn, err := q.Accept(ctx, r.endpoint.qps[i], cm.AcceptOptions{ConnectOptions: r.endpoint.connectOptions()})
	if err == nil {
		r.conns = append(r.conns, conn)
	}
	return err
}

// nextRequest waits for the client's next connection and rejects requests of other clients.
func (r *runner) nextRequest(ctx context.Context) (*cm.Request, error) {
	for {
		a, err := r.cmServer.Accept(ctx)
		if err != nil {
			return nil, err
		}
		if a.Endpoint == r.cmClient.endpoint && a.Request.RemoteAdapter() == r.cmClient.conn.RemoteAdapter() {
			return a.Request, nil
		}
		r.Dropped(&cm.Error{Op: "accept", Peer: a.Request.RemoteAddr(), Err: errBusy})
		_ = a.Request.Reject(cm.ConsumerReject, nil) // fails if the client has withdrawn it
	}
}

var errBusy = errors.New("another client is being served")

// exchangeUD determines the peer's queue pair for queue pair i. The client requests it by SIDR; a
// server that sends learns the client's from the first datagram.
func (r *runner) exchangeUD(ctx context.Context, i int) error {
	if r.Server != "" {
		return r.requestUDPeer(ctx, i)
	}
	return r.acceptUDPeer(ctx, i)
}

// serverSends reports whether the server sends data.
func (p *plan) serverSends() bool { return p.Bidirectional || p.Test.Metric == Latency }

func (r *runner) requestUDPeer(ctx context.Context, i int) error {
	e := r.endpoint
	var peer *cm.UDPeer
	err := retryUntilListening(ctx, func() (err error) {
		peer, err = r.manager.DialUD(ctx, r.serverAddr, cm.UDDialOptions{UDQueuePair: cm.UDQueuePair{QP: e.qps[i]}})
		return err
	})
	if err != nil {
		return err
	}
	if err := e.addPeer(peer.AH, peer.QPN, peer.QKey); err != nil || !r.serverSends() {
		return err
	}
	// Four bytes, and the number in the immediate data.
	at := e.areas[i]
	binary.NativeEndian.PutUint32(at.mr.Bytes()[at.send:], e.qps[i].Num())
	_, err = e.qps[i].PostSend([]verbs.SendWR{{Opcode: verbs.WRSendWithImm, Flags: verbs.SendSignaled, Imm: e.qps[i].Num(),
		SGList: []verbs.SGE{at.mr.SGE(at.send, 4)}, AH: e.ahs[i], RemoteQPN: peer.QPN, RemoteQKey: peer.QKey}})
	if err != nil {
		return err
	}
	_, err = e.waitCompletion(ctx)
	copy(at.mr.Bytes()[at.send:], e.pattern[:4])
	return err
}

func (r *runner) acceptUDPeer(ctx context.Context, i int) error {
	e := r.endpoint
	q, err := r.udListener.Accept(ctx)
	if err != nil {
		return err
	}
	at := e.areas[i]
	prepare := func(qp verbs.QP) error {
		if !r.serverSends() {
			return nil
		}
		receive := []verbs.RecvWR{{SGList: []verbs.SGE{at.mr.SGE(at.recv-grhLen, grhLen+4)}}}
		if e.srq != nil {
			_, err := e.srq.PostRecv(receive)
			return err
		}
		_, err := qp.PostRecv(receive)
		return err
	}
	if err := q.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QP: e.qps[i], Prepare: prepare}}); err != nil {
		return err
	}
	if !r.serverSends() {
		return e.addPeer(q.RemoteAH(), 0, cm.UDQKey)
	}
	wc, err := e.waitCompletion(ctx)
	if err != nil {
		return err
	}
	if wc.Flags&verbs.WCWithImm == 0 {
		return protocolErrorf("first datagram carries no queue pair number")
	}
	return e.addPeer(q.RemoteAH(), wc.Imm, cm.UDQKey)
}

// addPeer adds the destination of the datagrams of the next queue pair.
func (e *endpoint) addPeer(to verbs.AHAttr, qpn, qkey uint32) error {
	to.TrafficClass, to.SL, to.HopLimit = uint8(max(e.TOS, 0)), uint8(e.SL), hops
	ah, err := e.pd.CreateAH(to)
	if err != nil {
		return err
	}
	e.ahs = append(e.ahs, ah)
	e.udPeers = append(e.udPeers, udPeer{qpn, qkey})
	return nil
}

// A udPeer is a queue pair of the peer.
type udPeer struct{ qpn, qkey uint32 }

// waitCompletion waits for one completion.
func (e *endpoint) waitCompletion(ctx context.Context) (verbs.WC, error) {
	var wc [1]verbs.WC
	if _, err := e.cq.PollWait(ctx, wc[:]); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = protocolErrorf("first datagram did not arrive")
		}
		return wc[0], err
	}
	return wc[0], wc[0].Err()
}
