package cm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A Request is a peer's connection request (REQ). It must be accepted or rejected exactly once.
// The manager rejects a request that remains unanswered with RejTimeout after at most 2 minutes.
type Request struct {
	Params // the parameters in the REQ
	in     *incomingRequest
}

// PrivateData returns the private data of the REQ, including trailing zeros of the field. The
// caller must not modify it.
func (r *Request) PrivateData() []byte { return r.orClosed().private }

// RemoteAddr returns the peer's address and port.
func (r *Request) RemoteAddr() netip.AddrPort { return r.orClosed().remoteAddr() }

// RemoteAdapter returns the address and UDP port of the peer's adapter.
func (r *Request) RemoteAdapter() netip.AddrPort { return r.orClosed().peer }

// LocalAddr returns the local address and port that the peer dialed.
func (r *Request) LocalAddr() netip.AddrPort { return r.orClosed().l.addr }

// Reject sends a REJ with the reason and up to 148 bytes of private data. Reason 0 means
// ConsumerReject.
func (r *Request) Reject(reason Reason, private []byte) error {
	setDefault(&reason, ConsumerReject)
	if in := r.orClosed(); in.rejecter() != nil {
		if err := in.rejectDelegated(private); err != nil {
			return wrapError("reject", r.RemoteAddr(), err, "")
		}
		return nil
	}
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

// A pendingAccept is an accepted connection that awaits the peer's RTU.
type pendingAccept struct {
	conn   *Conn
	result chan error // buffered, capacity 1
}

// handleEvent implements eventHandler. It runs once: after the RTU the Conn handles further
// events.
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

// handleClose implements eventHandler.
func (a *pendingAccept) handleClose() {
	select {
	case a.result <- ErrClosed:
	default:
	}
}

// Accept accepts the request with qp, which must have the transport type that the peer requested
// and be in StateReset or StateInit, and blocks until the peer's RTU arrives. After an error qp
// may be in any state; modify it to StateReset before reuse. A slow peer can delay the RTU, so a
// server should accept requests concurrently. A nil ctx is never done.
func (r *Request) Accept(ctx context.Context, qp verbs.QP, o AcceptOptions) (*Conn, error) {
	c, err := r.accept(orBackground(ctx), qp, &o)
	if err != nil {
		return nil, wrapError("accept", r.RemoteAddr(), err, "")
	}
	return c, nil
}

func (r *Request) accept(ctx context.Context, qp verbs.QP, o *AcceptOptions) (*Conn, error) {
	if r.orClosed().stream != nil {
		return r.acceptStream(qp, o)
	}
	if r.orClosed().kernel != nil {
		return r.acceptKernel(ctx, qp, o)
	}
	attr, err := r.checkAccept(qp, o)
	if err != nil {
		return nil, err
	}
	d := r.in.l.m.describeQP(qp, &attr)
	d.ResponderResources, d.InitiatorDepth = min(r.InitiatorDepth, d.ResponderResources), min(r.ResponderResources, d.InitiatorDepth)
	rep := r.buildREP(d, o.PrivateData)
	c := &Conn{
		m: r.in.l.m, id: r.in.id, qp: qp, local: r.LocalAddr(), remote: r.RemoteAddr(), adapter: r.RemoteAdapter(),
		params: r.Params.withPathOptions(&o.ConnectOptions), private: r.in.private, done: make(chan struct{}), released: make(chan struct{}),
	}
	c.params.Selective = rep.LocalEECN&usesSelective != 0
	access := remoteAccess(&o.ConnectOptions, rep.ResponderResources)
	if err := initQP(qp, access, o.Receives, o.Prepare); err != nil {
		return nil, err
	}
	if err := modifyToRTS(qp, verbs.QPAttr{
		PathMTU: r.MTU, RQPSN: rep.StartingPSN, SQPSN: r.PSN, DestQPN: r.QPN, AccessFlags: access, AV: c.params.addressVector(c.adapter),
		MaxRdAtomic: rep.InitiatorDepth, MaxDestRdAtomic: rep.ResponderResources,
		MinRNRTimer: attr.MinRNRTimer, Timeout: attr.Timeout, RetryCnt: attr.RetryCnt, RNRRetry: r.RNRRetry,
	}, o.Access != 0); err != nil {
		return nil, err
	}
	return c, c.sendREPAndWait(ctx, r.in, rep)
}

// checkAccept returns the attributes that o and the REQ select, or the reason why the request
// cannot be accepted with qp and o.
func (r *Request) checkAccept(qp verbs.QP, o *AcceptOptions) (attr verbs.QPAttr, err error) {
	if r.orClosed() == closedRequest {
		return attr, ErrClosed
	}
	if qp == nil {
		return attr, fmt.Errorf("%w: nil queue pair", verbs.ErrInvalid)
	}
	if t := qp.Type(); t != r.Transport {
		return attr, fmt.Errorf("%w: transport %v requested, queue pair has %v", verbs.ErrInvalid, r.Transport, t)
	}
	if err := checkPrivateData(o.PrivateData, mad.REPPrivateLen); err != nil {
		return attr, err
	}
	o.MTU = 0 // the REQ determines the MTU
	if attr, err = o.QPAttr(r.Transport); err != nil {
		return attr, err
	}
	if o.AckTimeout == 0 {
		attr.Timeout = timeoutCode(r.AckTimeout)
	}
	if o.Retries == 0 {
		attr.RetryCnt = r.RetryCount
	}
	return attr, nil
}

// failoverUnsupported is the REP's failover code for "alternate paths not supported" (IBTA volume
// 1, section 12.7.21).
const failoverUnsupported = 1

// buildREP returns the REP that answers the request.
func (r *Request) buildREP(qp *ExternalQP, private []byte) mad.REP {
	m := r.in.l.m
	rep := mad.REP{
		QPN: qp.Num, StartingPSN: qp.PSN, FlowControl: qp.FlowControl, SRQ: qp.SRQ, TargetAckDelay: m.limits.LocalCAAckDelay,
		RNRRetry: qp.RNRRetries, ResponderResources: qp.ResponderResources, InitiatorDepth: qp.InitiatorDepth,
		PrivateData: private,
	}
	if r.PeerBuffer != 0 {
		rep.LocalEECN = encodeBuffer(m.port.RecvBuffer)
		if r.Selective && qp.selective {
			rep.LocalEECN |= usesSelective
		}
	}
	if r.in.alternate {
		rep.Failover = failoverUnsupported
	}
	return rep
}

// sendREPAndWait sends the REP and waits for the RTU. On error it moves the queue pair to
// StateErr.
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
		vtime.WaitUntil(func() bool { return len(a.result) > 0 || ctx.Err() != nil })
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

// Notify reports that data has arrived on qp, which is being accepted (rdma_notify,
// IB_EVENT_COMM_EST). Data implies that the peer considers the connection established, so Accept
// returns without waiting for an RTU that may be delayed or lost.
func (m *Manager) Notify(qp verbs.QP) {
	m = m.orClosed()
	m.mu.Lock()
	defer m.mu.Unlock()
	if id, ok := m.awaitingRTU[qp]; ok {
		m.machine.Notify(id)
		m.dispatchAndFlush()
	}
}

// removeAwaitingRTU removes qp from the set of queue pairs that await an RTU.
func (m *Manager) removeAwaitingRTU(qp verbs.QP) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.awaitingRTU, qp)
}
