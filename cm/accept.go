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
	in     *incomingRequest
}

// PrivateData is what the peer's program sent along, with the trailing zeros of
// the field.
func (r *Request) PrivateData() []byte { return r.orClosed().private }

// RemoteAddr is the peer's address and port.
func (r *Request) RemoteAddr() netip.AddrPort { return r.orClosed().remoteAddr() }

// RemoteAdapter is the address and UDP port of the peer's adapter.
func (r *Request) RemoteAdapter() netip.AddrPort { return r.orClosed().peer }

// LocalAddr is the address and port that the peer dialed.
func (r *Request) LocalAddr() netip.AddrPort { return r.orClosed().l.addr }

// Reject refuses the request. The peer's program gets up to 148 bytes of private
// data.
func (r *Request) Reject(private []byte) error { return r.RejectWith(ConsumerReject, private) }

// RejectWith is Reject with another reason.
func (r *Request) RejectWith(reason Reason, private []byte) error {
	if err := checkPrivateData(private, mad.REJPrivateLen); err != nil {
		return wrapError("reject", r.RemoteAddr(), err, "")
	}
	in := r.orClosed()
	m := in.l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := in.claim(); err != nil {
		return wrapError("reject", r.RemoteAddr(), err, "")
	}
	m.machine.Reject(m.now(), in.id, mad.REJ{Reason: reason, PrivateData: private})
	m.dispatchAndFlush()
	return nil
}

// pendingAccept is a connection that was accepted and is not established yet.
type pendingAccept struct {
	conn   *Conn
	result chan error // room for one
}

// handleEvent implements party, once: then it is over, or the connection hears itself.
func (a *pendingAccept) handleEvent(e *protocol.Event) {
	var err error
	switch e.Kind {
	case protocol.EventEstablished:
		a.conn.m.handlers[e.ID] = a.conn
	case protocol.EventRejected:
		err = &RejectError{Reason: e.Reason, Info: append([]byte(nil), e.Info...), PrivateData: append([]byte(nil), e.Private...)}
	case protocol.EventDisconnected:
		err = ErrDisconnected
	default:
		err = newUnreachable(e.Err)
	}
	a.result <- err
}

// handleClose implements party.
func (a *pendingAccept) handleClose() {
	select {
	case a.result <- ErrClosed:
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
		return nil, wrapError("accept", r.RemoteAddr(), err, "")
	}
	return c, nil
}

func (r *Request) accept(ctx context.Context, qp verbs.QP, o *AcceptOptions) (*Conn, error) {
	if err := r.checkAccept(qp, o); err != nil {
		return nil, err
	}
	rep := r.buildREP(qp, o)
	c := &Conn{
		m: r.in.l.m, id: r.in.id, qp: qp, local: r.LocalAddr(), remote: r.RemoteAddr(), adapter: r.RemoteAdapter(),
		params: r.Params.withPathOptions(&o.ConnectOptions), private: r.in.private, done: make(chan struct{}), released: make(chan struct{}),
	}
	access := remoteAccess(&o.ConnectOptions, rep.ResponderResources)
	if err := initQP(qp, access, o.Prepare); err != nil {
		return nil, err
	}
	if err := modifyToRTS(qp, verbs.QPAttr{
		PathMTU: r.MTU, RQPSN: rep.StartingPSN, SQPSN: r.PSN, DestQPN: r.QPN, AccessFlags: access, AV: c.params.addressVector(c.adapter),
		MaxRdAtomic: rep.InitiatorDepth, MaxDestRdAtomic: rep.ResponderResources,
		MinRNRTimer: orDefault(o.MinRNRTimer, defaultMinRNRTimer),
		Timeout:     orDefault(o.Timeout, r.AckTimeout), RetryCnt: orDefault(o.RetryCnt, r.RetryCount), RNRRetry: r.RNRRetry,
	}, o.Access != 0); err != nil {
		return nil, err
	}
	return c, c.sendREPAndWait(ctx, r.in, rep)
}

// checkAccept refuses what the request cannot be accepted with.
func (r *Request) checkAccept(qp verbs.QP, o *AcceptOptions) error {
	if r.orClosed() == closedRequest {
		return ErrClosed
	}
	if qp == nil {
		return fmt.Errorf("%w: no queue pair is given", verbs.ErrInvalid)
	}
	if t := qp.Type(); t != r.Transport {
		return fmt.Errorf("%w: the peer asks for %v and the queue pair is %v", verbs.ErrInvalid, r.Transport, t)
	}
	if err := checkPrivateData(o.PrivateData, mad.REPPrivateLen); err != nil {
		return err
	}
	o.MTU = 0 // it is what the peer asked for
	return checkConnectOptions(&o.ConnectOptions, r.Transport)
}

// failoverUnsupported in a REP says that there are no alternate paths.
const failoverUnsupported = 1

// buildREP lays out the REP.
func (r *Request) buildREP(qp verbs.QP, o *AcceptOptions) mad.REP {
	m := r.in.l.m
	credits, shared := creditsAndSRQ(qp)
	served, outstanding := m.rdAtomicLimits(&o.ConnectOptions)
	rep := mad.REP{
		QPN: qp.Num(), StartingPSN: m.randomPSN(), FlowControl: credits, SRQ: shared, TargetAckDelay: m.limits.LocalCAAckDelay,
		RNRRetry:           orDefault(o.RNRRetry, defaultRetryCnt),
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

// sendREPAndWait sends the REP and waits for the RTU.
func (c *Conn) sendREPAndWait(ctx context.Context, in *incomingRequest, rep mad.REP) error {
	m := c.m
	a := &pendingAccept{conn: c, result: make(chan error, 1)}
	m.mu.Lock()
	err := in.claim()
	if err == nil && !m.machine.Accept(m.now(), c.id, rep) {
		err = ErrWithdrawn
	}
	if err == nil {
		m.handlers[c.id] = a
		m.awaitingRTU[c.qp] = c.id
		defer m.removeAwaitingRTU(c.qp)
	}
	m.dispatchAndFlush()
	m.mu.Unlock()
	if err == nil {
		select {
		case err = <-a.result:
		case <-ctx.Done():
			err = ctx.Err()
			m.abandon(c.id)
		}
	}
	if err != nil {
		modifyToErr(c.qp)
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
	if id, ok := m.awaitingRTU[qp]; ok {
		m.machine.Notify(id)
		m.dispatchAndFlush()
	}
}

// removeAwaitingRTU notes that a queue pair is not being accepted any more.
func (m *Manager) removeAwaitingRTU(qp verbs.QP) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.awaitingRTU, qp)
}
