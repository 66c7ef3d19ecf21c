package cm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Request is a peer's request for a connection, to be accepted or rejected
// once. One that is left alone is rejected after a while.
type Request struct {
	Params // what the peer asks for
	in     *incoming
}

// PrivateData is what the peer's program sent along, with the trailing zeros of
// the field.
func (r *Request) PrivateData() []byte { return r.in.private }

// RemoteAddr is the peer's address and port.
func (r *Request) RemoteAddr() netip.AddrPort { return r.in.remote() }

// RemoteAdapter is the address and UDP port of the peer's adapter.
func (r *Request) RemoteAdapter() netip.AddrPort { return r.in.event.Peer }

// LocalAddr is the address and port that the peer dialed.
func (r *Request) LocalAddr() netip.AddrPort { return r.in.l.addr }

// remote is the address in RDMA-CM's header, or else the adapter's.
func (in *incoming) remote() netip.AddrPort {
	if in.event.CMA.Src.IsValid() {
		return in.event.CMA.Src
	}
	return netip.AddrPortFrom(in.event.Peer.Addr(), 0)
}

// Reject refuses the request. The peer's program gets up to 148 bytes of private
// data.
func (r *Request) Reject(private []byte) error { return r.RejectWith(ConsumerReject, private) }

// RejectWith is Reject with another reason.
func (r *Request) RejectWith(reason Reason, private []byte) error {
	if err := checkPrivate(private, mad.REJPrivateLen); err != nil {
		return errOf("reject", r.RemoteAddr(), err, "")
	}
	m := r.in.l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.in.claim(nil); err != nil {
		return errOf("reject", r.RemoteAddr(), err, "")
	}
	delete(m.parties, r.in.id)
	m.machine.Reject(m.now(), r.in.id, mad.REJ{Reason: reason, PrivateData: private})
	m.settle()
	return nil
}

// claim takes a request to answer it. The lock is held.
func (in *incoming) claim(p party) error {
	switch {
	case in.l.m.closed:
		return ErrClosed
	case in.heard != nil:
		return ErrAnswered
	case in.gone:
		return ErrWithdrawn
	}
	in.gone = true
	if p != nil {
		in.heard = p
		in.l.m.parties[in.id] = p
	} else {
		in.heard = in
	}
	return nil
}

// accepting is a connection that was accepted and is not established yet.
type accepting struct {
	conn  *Conn
	heard chan error // room for one
}

// hear implements party. From the first event on the connection hears itself.
func (a *accepting) hear(e *protocol.Event) {
	var err error
	switch e.Kind {
	case protocol.EventEstablished:
		a.conn.m.parties[e.ID] = a.conn
	case protocol.EventRejected:
		err = &RejectError{Reason: e.Reason, Info: append([]byte(nil), e.Info...), PrivateData: append([]byte(nil), e.Private...)}
	case protocol.EventDisconnected:
		err = ErrDisconnected
	default:
		err = ErrUnreachable
	}
	a.heard <- err
}

// lost implements party.
func (a *accepting) lost() {
	select {
	case a.heard <- ErrClosed:
	default:
	}
}

// Accept accepts the request with a queue pair of the type that the peer asked
// for, in StateReset or StateInit, and waits until the peer has confirmed. On an
// error the queue pair may be in any state; Modify to StateReset starts anew. A
// peer can let us wait here, so requests should be accepted concurrently.
func (r *Request) Accept(ctx context.Context, qp verbs.QP, o AcceptOptions) (*Conn, error) {
	c, err := r.accept(ctx, qp, &o)
	if err != nil {
		return nil, errOf("accept", r.RemoteAddr(), err, "")
	}
	return c, nil
}

// failoverUnsupported in a REP says that there are no alternate paths.
const failoverUnsupported = 1

func (r *Request) accept(ctx context.Context, qp verbs.QP, o *AcceptOptions) (*Conn, error) {
	m := r.in.l.m
	if qp == nil {
		return nil, fmt.Errorf("%w: no queue pair is given", verbs.ErrInvalid)
	}
	if t := qp.Type(); t != r.Transport {
		return nil, fmt.Errorf("%w: the peer asks for %v and the queue pair is %v", verbs.ErrInvalid, r.Transport, t)
	}
	if err := checkPrivate(o.PrivateData, mad.REPPrivateLen); err != nil {
		return nil, err
	}
	if err := checkOptions(&o.ConnectOptions); err != nil {
		return nil, err
	}
	credits, shared := givesCredits(qp)
	rep := mad.REP{
		QPN: qp.Num(), StartingPSN: m.psn(), FlowControl: credits, SRQ: shared, TargetAckDelay: m.limits.LocalCAAckDelay,
		RNRRetry:           orDefault(o.RNRRetry, defaultRetries),
		ResponderResources: min(r.InitiatorDepth, orDefault(o.MaxDestRdAtomic, defaultRdAtomic), uint8(min(m.limits.MaxQPRdAtom, 255))),
		InitiatorDepth:     min(r.ResponderResources, orDefault(o.MaxRdAtomic, defaultRdAtomic), uint8(min(m.limits.MaxQPInitRdAtom, 255))),
		PrivateData:        o.PrivateData,
	}
	if r.PeerBuffer != 0 {
		rep.LocalEECN = mad.EECNOfBuffer(m.port.RecvBuffer)
	}
	if r.in.event.REQ.Alternate.LocalGID != [16]byte{} {
		rep.Failover = failoverUnsupported
	}
	c := &Conn{
		m: m, id: r.in.id, qp: qp, local: r.LocalAddr(), remote: r.RemoteAddr(), adapter: r.RemoteAdapter(),
		params: r.Params.with(&o.ConnectOptions), private: r.in.private, done: make(chan struct{}), released: make(chan struct{}),
	}
	if err := begin(qp, accessOf(&o.ConnectOptions, rep.ResponderResources), o.Prepare); err != nil {
		return nil, err
	}
	if err := join(qp, verbs.QPAttr{
		PathMTU: r.MTU, RQPSN: rep.StartingPSN, SQPSN: r.PSN, DestQPN: r.QPN,
		AccessFlags: accessOf(&o.ConnectOptions, rep.ResponderResources), AV: c.params.av(r.RemoteAdapter()),
		MaxRdAtomic: rep.InitiatorDepth, MaxDestRdAtomic: rep.ResponderResources,
		MinRNRTimer: orDefault(o.MinRNRTimer, defaultMinRNRTimer),
		Timeout:     orDefault(o.Timeout, r.AckTimeout), RetryCnt: orDefault(o.RetryCnt, r.RetryCount), RNRRetry: r.RNRRetry,
	}, o.Access != 0); err != nil {
		return nil, err
	}
	return c, c.await(ctx, r.in, rep)
}

// await sends the REP and waits for the RTU.
func (c *Conn) await(ctx context.Context, in *incoming, rep mad.REP) error {
	m := c.m
	a := &accepting{conn: c, heard: make(chan error, 2)}
	m.mu.Lock()
	err := in.claim(a)
	if err == nil && !m.machine.Accept(m.now(), c.id, rep) {
		delete(m.parties, c.id)
		err = ErrWithdrawn
	}
	if err == nil {
		m.unconfirmed[c.qp] = c.id
		defer m.confirmed(c.qp)
	}
	m.settle()
	m.mu.Unlock()
	if err == nil {
		select {
		case err = <-a.heard:
		case <-ctx.Done():
			err = ctx.Err()
			m.abandon(c.id)
		}
	}
	if err != nil {
		fail(c.qp)
	}
	return err
}

// Notify tells that data has come on a queue pair that is being accepted
// (rdma_notify): the peer considers the connection established, so Accept need
// not wait for a message that says so and may be late or lost.
func (m *Manager) Notify(qp verbs.QP) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id, ok := m.unconfirmed[qp]; ok {
		m.machine.Notify(id)
		m.settle()
	}
}

// confirmed notes that a queue pair is not being accepted any more.
func (m *Manager) confirmed(qp verbs.QP) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unconfirmed, qp)
}
