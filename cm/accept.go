package cm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
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
func (r *Request) PrivateData() []byte { return r.orClosed().private }

// RemoteAddr is the peer's address and port.
func (r *Request) RemoteAddr() netip.AddrPort { return r.orClosed().remote() }

// RemoteAdapter is the address and UDP port of the peer's adapter.
func (r *Request) RemoteAdapter() netip.AddrPort { return r.orClosed().peer }

// LocalAddr is the address and port that the peer dialed.
func (r *Request) LocalAddr() netip.AddrPort { return r.orClosed().l.addr }

// Reject refuses the request. The peer's program gets up to 148 bytes of private
// data.
func (r *Request) Reject(private []byte) error { return r.RejectWith(ConsumerReject, private) }

// RejectWith is Reject with another reason.
func (r *Request) RejectWith(reason Reason, private []byte) error {
	if err := checkPrivate(private, mad.REJPrivateLen); err != nil {
		return errOf("reject", r.RemoteAddr(), err, "")
	}
	in := r.orClosed()
	m := in.l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := in.claim(); err != nil {
		return errOf("reject", r.RemoteAddr(), err, "")
	}
	m.machine.Reject(m.now(), in.id, mad.REJ{Reason: reason, PrivateData: private})
	m.settle()
	return nil
}

// accepting is a connection that was accepted and is not established yet.
type accepting struct {
	conn  *Conn
	heard chan error // room for one
}

// hear implements party, once: then it is over, or the connection hears itself.
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
		err = unreachable(e.Err)
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
	c, err := r.accept(orBackground(ctx), qp, &o)
	if err != nil {
		return nil, errOf("accept", r.RemoteAddr(), err, "")
	}
	return c, nil
}

func (r *Request) accept(ctx context.Context, qp verbs.QP, o *AcceptOptions) (*Conn, error) {
	if err := r.check(qp, o); err != nil {
		return nil, err
	}
	rep := r.answer(qp, o)
	c := &Conn{
		m: r.in.l.m, id: r.in.id, qp: qp, local: r.LocalAddr(), remote: r.RemoteAddr(), adapter: r.RemoteAdapter(),
		params: r.Params.with(&o.ConnectOptions), private: r.in.private, done: make(chan struct{}), released: make(chan struct{}),
	}
	access := accessOf(&o.ConnectOptions, rep.ResponderResources)
	if err := begin(qp, access, o.Prepare); err != nil {
		return nil, err
	}
	if err := join(qp, verbs.QPAttr{
		PathMTU: r.MTU, RQPSN: rep.StartingPSN, SQPSN: r.PSN, DestQPN: r.QPN, AccessFlags: access, AV: c.params.av(c.adapter),
		MaxRdAtomic: rep.InitiatorDepth, MaxDestRdAtomic: rep.ResponderResources,
		MinRNRTimer: orDefault(o.MinRNRTimer, defaultMinRNRTimer),
		Timeout:     orDefault(o.Timeout, r.AckTimeout), RetryCnt: orDefault(o.RetryCnt, r.RetryCount), RNRRetry: r.RNRRetry,
	}, o.Access != 0); err != nil {
		return nil, err
	}
	return c, c.await(ctx, r.in, rep)
}

// check refuses what the request cannot be accepted with.
func (r *Request) check(qp verbs.QP, o *AcceptOptions) error {
	if r.orClosed() == closedRequest {
		return ErrClosed
	}
	if qp == nil {
		return fmt.Errorf("%w: no queue pair is given", verbs.ErrInvalid)
	}
	if t := qp.Type(); t != r.Transport {
		return fmt.Errorf("%w: the peer asks for %v and the queue pair is %v", verbs.ErrInvalid, r.Transport, t)
	}
	if err := checkPrivate(o.PrivateData, mad.REPPrivateLen); err != nil {
		return err
	}
	o.MTU = 0 // it is what the peer asked for
	return checkOptions(&o.ConnectOptions, r.Transport)
}

// failoverUnsupported in a REP says that there are no alternate paths.
const failoverUnsupported = 1

// answer lays out the REP.
func (r *Request) answer(qp verbs.QP, o *AcceptOptions) mad.REP {
	m := r.in.l.m
	credits, shared := givesCredits(qp)
	served, outstanding := m.rdAtomic(&o.ConnectOptions)
	rep := mad.REP{
		QPN: qp.Num(), StartingPSN: m.psn(), FlowControl: credits, SRQ: shared, TargetAckDelay: m.limits.LocalCAAckDelay,
		RNRRetry:           orDefault(o.RNRRetry, defaultRetries),
		ResponderResources: min(r.InitiatorDepth, served), InitiatorDepth: min(r.ResponderResources, outstanding),
		PrivateData: o.PrivateData,
	}
	if r.PeerBuffer != 0 {
		rep.LocalEECN = mad.EECNOfBuffer(m.port.RecvBuffer)
	}
	if r.in.alternate {
		rep.Failover = failoverUnsupported
	}
	return rep
}

// await sends the REP and waits for the RTU.
func (c *Conn) await(ctx context.Context, in *incoming, rep mad.REP) error {
	m := c.m
	a := &accepting{conn: c, heard: make(chan error, 1)}
	m.mu.Lock()
	err := in.claim()
	if err == nil && !m.machine.Accept(m.now(), c.id, rep) {
		err = ErrWithdrawn
	}
	if err == nil {
		m.parties[c.id] = a
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
	m = m.orClosed()
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
