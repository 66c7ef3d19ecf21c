package cm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Dial connects qp to the listener at addr and blocks until the connection is established. The
// type of qp is RC or UC, and its state StateReset or StateInit. Dial returns a *RejectError if
// the peer rejects the request and ErrUnreachable if the peer does not reply. If ctx is done
// first, it returns the context's error, joined with ErrPending if the peer's adapter has
// acknowledged the request with an MRA. After an error the queue pair may be in any state; modify
// it to StateReset before reuse. A nil ctx is never done.
//
// If the peer rejects the MTU and o.MTU is 0, Dial retries with the MTU that the peer proposes.
func (m *Manager) Dial(ctx context.Context, addr netip.AddrPort, qp verbs.QP, o DialOptions) (*Conn, error) {
	m = m.orClosed()
	c, err := m.dial(orBackground(ctx), addr, qp, &o)
	if err != nil {
		return nil, wrapError("dial", addr, err, m.unreachableHint(err, o.UDPPort))
	}
	return c, nil
}

// unreachableHint returns probable causes of err if the peer did not reply, and "" otherwise.
func (m *Manager) unreachableHint(err error, peerPort uint16) string {
	if m.streams != nil || m.kernel != nil {
		return ""
	}
	var refused *verbs.RefusedError
	if !errors.Is(err, ErrUnreachable) || errors.As(err, &refused) { // a *RefusedError names the cause itself
		return ""
	}
	text := fmt.Sprintf("no adapter at UDP port %d of that address, or a blocked path", peerPort)
	if m.addr.Port() != rocePort && peerPort == rocePort {
		text += fmt.Sprintf("; or an adapter other than softrnic, which replies to UDP port 4791, while the local one listens on %d", m.addr.Port())
	}
	return text
}

func (m *Manager) dial(ctx context.Context, addr netip.AddrPort, qp verbs.QP, o *DialOptions) (*Conn, error) {
	if m.streams != nil {
		return m.dialStream(ctx, addr, qp, o)
	}
	if m.kernel != nil {
		return m.dialKernel(ctx, addr, qp, o)
	}
	addr, peer, err := resolvePeer(addr, o)
	if err != nil {
		return nil, err
	}
	attr, err := m.checkDial(peer, qp, o)
	if err != nil {
		return nil, err
	}
	local, private, err := m.requestPrivateData(addr.Addr(), o)
	if err != nil {
		return nil, err
	}
	q := m.buildREQ(addr, m.describeQP(qp, &attr), o)
	q.PrivateData = private
	if err := initQP(qp, remoteAccess(&o.ConnectOptions, q.ResponderResources), o.Receives, o.Prepare); err != nil {
		return nil, err
	}
	a, err := m.negotiateMTU(ctx, peer, q, o, func() *dialOp { return &dialOp{} })
	if err != nil {
		return nil, err
	}
	c := &Conn{
		m: m, id: a.id, qp: qp, local: local, remote: addr, adapter: peer, params: paramsFromREP(q, &a.rep), private: a.private,
		done: make(chan struct{}), released: make(chan struct{}),
	}
	if err := c.completeDial(q, o, &attr); err != nil {
		return nil, err
	}
	return c, nil
}

// resolvePeer sets the defaults of o. It returns the address to dial in canonical form and the
// address of its adapter.
func resolvePeer(addr netip.AddrPort, o *DialOptions) (canonical, peer netip.AddrPort, err error) {
	setDefault(&o.UDPPort, rocePort)
	setDefault(&o.PortSpace, TCP)
	canonical = hostaddr.CanonicalPort(addr)
	return canonical, netip.AddrPortFrom(canonical.Addr(), o.UDPPort), checkPortSpace("DialOptions", o.PortSpace)
}

// negotiateMTU sends the REQ and waits for the reply, and repeats it with the MTU that the peer
// proposes unless o sets one. Each attempt has a dialOp of its own.
func (m *Manager) negotiateMTU(ctx context.Context, peer netip.AddrPort, q *mad.REQ, o *DialOptions, newOp func() *dialOp) (dialResult, error) {
	a, err := m.sendREQAndWait(ctx, peer, q, newOp())
	for smaller := smallerMTU(err, q.MTU); smaller != 0 && o.MTU == 0; smaller = smallerMTU(err, q.MTU) {
		q.MTU = smaller
		a, err = m.sendREQAndWait(ctx, peer, q, newOp())
	}
	return a, err
}

// sendREQAndWait sends a REQ and waits for the reply to d.
func (m *Manager) sendREQAndWait(ctx context.Context, peer netip.AddrPort, q *mad.REQ, d *dialOp) (dialResult, error) {
	d.result = make(chan dialResult, 1)
	if err := m.startDial(d, func(now protocol.Time) (uint32, bool) { return m.machine.Connect(now, peer, *q) }); err != nil {
		return dialResult{}, err
	}
	return m.awaitReply(ctx, d)
}

// smallerMTU returns the path MTU that a REJ proposes, or 0 if err is no REJ with InvalidMTU or
// the proposal is not smaller than requested.
func smallerMTU(err error, requested uint8) uint8 {
	var r *RejectError
	if !errors.As(err, &r) || r.Reason != InvalidMTU || len(r.Info) == 0 {
		return 0
	}
	if proposed := r.Info[0] >> 4; proposed < requested {
		return proposed
	}
	return 0
}

// checkDial validates the queue pair and the options of a dial. It returns the attributes that
// the options select.
func (m *Manager) checkDial(peer netip.AddrPort, qp verbs.QP, o *DialOptions) (attr verbs.QPAttr, err error) {
	if qp == nil {
		return attr, fmt.Errorf("%w: nil queue pair", verbs.ErrInvalid)
	}
	if t := qp.Type(); t != verbs.RC && t != verbs.UC {
		return attr, fmt.Errorf("%w: queue pair type %v; use DialUD for UD", verbs.ErrUnsupported, t)
	}
	if err := checkPrivateData(o.PrivateData, maxPrivateData(o.PortSpace, mad.REQPrivateLen)); err != nil {
		return attr, err
	}
	if attr, err = o.QPAttr(qp.Type()); err != nil {
		return attr, err
	}
	if o.MTU != 0 {
		if err := adapter.CheckPathMTU(m.dev, ahAttrTo(peer), o.MTU); err != nil {
			return attr, err
		}
	}
	return attr, m.checkReachable(peer)
}

// describeQP returns the description of a queue pair with the attributes that the options select
// and a random starting PSN.
func (m *Manager) describeQP(qp verbs.QP, attr *verbs.QPAttr) *ExternalQP {
	credits, shared := creditsAndSRQ(qp)
	served, outstanding := m.limitRdAtomic(attr)
	return &ExternalQP{
		Num: qp.Num(), Type: qp.Type(), PSN: m.randomPSN(), ResponderResources: served, InitiatorDepth: outstanding,
		FlowControl: credits, SRQ: shared, Retries: attr.RetryCnt, RNRRetries: attr.RNRRetry, AckTimeout: attr.Timeout,
		selective: qp.Type() == verbs.RC && m.port.Selective,
	}
}

// buildREQ returns the REQ for a dial of addr with qp and the path that o selects.
func (m *Manager) buildREQ(addr netip.AddrPort, qp *ExternalQP, o *DialOptions) *mad.REQ {
	timeout := timeoutCode(m.options.ResponseTimeout)
	q := &mad.REQ{
		ServiceID: mad.ServiceIDOf(o.PortSpace, addr.Port()), QPN: qp.Num,
		ResponderResources: qp.ResponderResources, InitiatorDepth: qp.InitiatorDepth,
		RemoteResponseTimeout: timeout, LocalResponseTimeout: timeout,
		MaxCMRetries: uint8(m.options.Retries), FlowControl: qp.FlowControl, SRQ: qp.SRQ,
		StartingPSN: qp.PSN, RetryCount: qp.Retries, RNRRetry: qp.RNRRetries,
		PKey: 0xffff, MTU: uint8(cmp.Or(o.MTU, adapter.FitPathMTU(m.dev, ahAttrTo(netip.AddrPortFrom(addr.Addr(), o.UDPPort)), m.port.ActiveMTU))),
		Primary: mad.Path{
			LocalLID: mad.LIDPermissive, RemoteLID: mad.LIDPermissive,
			LocalGID: verbs.GIDFromAddr(m.addr.Addr()), RemoteGID: verbs.GIDFromAddr(addr.Addr()),
			FlowLabel: o.FlowLabel, TrafficClass: o.TrafficClass, HopLimit: cmp.Or(o.HopLimit, 64), SL: o.SL,
			AckTimeout: qp.AckTimeout,
		},
	}
	if qp.Type == verbs.UC {
		q.Transport = mad.TransportUC
		q.ResponderResources, q.InitiatorDepth = 0, 0
	}
	if m.options.Announce || o.UDPPort != rocePort || addr.Addr().IsLoopback() {
		q.LocalEECN = encodeBuffer(m.port.RecvBuffer)
		if qp.selective {
			q.RemoteEECN = offersSelective
		}
	}
	return q
}

// limitRdAtomic returns the number of RDMA READs and atomics that the local queue pair serves and
// issues at a time, bounded by the device's limits.
func (m *Manager) limitRdAtomic(attr *verbs.QPAttr) (served, outstanding uint8) {
	return min(attr.MaxDestRdAtomic, uint8(min(m.limits.MaxQPRdAtom, 255))),
		min(attr.MaxRdAtomic, uint8(min(m.limits.MaxQPInitRdAtom, 255)))
}

// ackTimeout returns the local ACK timeout code of the queue pair. For a peer that is not known
// to be a softrnic, and if o.AckTimeout is 0, it adds the peer's target ACK delay.
func (c *Conn) ackTimeout(o *DialOptions, attr *verbs.QPAttr) uint8 {
	if o.AckTimeout == 0 && c.params.PeerBuffer == 0 {
		return timeoutCode(verbs.AckTimeout(attr.Timeout) + c.params.AckDelay)
	}
	return attr.Timeout
}

// completeDial moves the queue pair to StateRTS with the parameters of the REP and sends the RTU.
// On error it rejects the REP.
func (c *Conn) completeDial(q *mad.REQ, o *DialOptions, attr *verbs.QPAttr) error {
	p := &c.params
	refuse := func(r mad.Reason, err error) error {
		c.m.mu.Lock()
		defer c.m.mu.Unlock()
		delete(c.m.handlers, c.id)
		c.m.machine.Reject(c.m.now(), c.id, mad.REJ{Reason: r})
		c.m.dispatchAndFlush()
		return err
	}
	if int(p.InitiatorDepth) > c.m.limits.MaxQPRdAtom {
		return refuse(mad.RejNoRespResources, fmt.Errorf("%w: peer requests %d outstanding reads and atomics, device limit %d",
			verbs.ErrLimit, p.InitiatorDepth, c.m.limits.MaxQPRdAtom))
	}
	served := p.InitiatorDepth
	a := verbs.QPAttr{
		PathMTU: p.MTU, RQPSN: q.StartingPSN, SQPSN: p.PSN, DestQPN: p.QPN, AccessFlags: remoteAccess(&o.ConnectOptions, served),
		AV:          p.addressVector(c.adapter),
		MaxRdAtomic: min(p.ResponderResources, q.InitiatorDepth), MaxDestRdAtomic: served,
		MinRNRTimer: attr.MinRNRTimer,
		Timeout:     c.ackTimeout(o, attr), RetryCnt: q.RetryCount, RNRRetry: p.RNRRetry,
	}
	if err := modifyToRTS(c.qp, a, o.Access != 0); err != nil {
		return refuse(mad.RejConsumer, err)
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if !c.m.machine.Ready(c.id, nil) {
		modifyToErr(c.qp)
		return ErrDisconnected
	}
	c.m.handlers[c.id] = c
	c.m.dispatchAndFlush()
	return nil
}
