package cm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// On a device of the kernel the kernel's connection manager exchanges the messages, because queue
// pair 1 is its own. It has connections of the device's own queue pairs only: no datagrams (SIDR), and
// no private data with the end of a connection. It shares its ports with the other programs of the
// host, and SDP's port space with TCP's.

// errNoKernel is the cause of calls that the kernel's connection manager does not have.
var errNoKernel = fmt.Errorf("%w: the kernel's connection manager has connections of the device's own queue pairs only", verbs.ErrUnsupported)

// newKernelManager creates the manager of a device whose connections the kernel sets up.
func newKernelManager(dev verbs.Device, o Options, c adapter.Connector) (*Manager, error) {
	m, err := newDelegatedManager(dev, o)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	m.kernel = c
	return m, nil
}

// closeKernel is Close of a manager of the kernel's connections.
func (m *Manager) closeKernel() error {
	m.closeListeners()
	m.mu.Lock()
	var conns []*Conn
	for _, h := range m.handlers {
		if c, ok := h.(*Conn); ok {
			conns = append(conns, c)
		}
	}
	m.mu.Unlock()
	m.closeHandlers()
	for _, c := range conns {
		_ = c.kernel.Disconnect()
	}
	return m.kernel.Close()
}

// kernelSpace returns the port space of the kernel for one of RDMA-CM's.
func kernelSpace(s PortSpace) uint16 {
	if s == SDP {
		s = TCP
	}
	return uint16(s)
}

// listenKernel starts a listener in the kernel.
func (m *Manager) listenKernel(port uint16, o *ListenOptions) (*listener, error) {
	l := newDelegatedListener(m)
	if m.isClosed() {
		return nil, m.listenError(port, ErrClosed)
	}
	inner, err := m.kernel.Listen(kernelSpace(o.PortSpace), port, o.Backlog, func(r adapter.ConnectorConn) { l.enqueueKernel(r, o) })
	return l.startDelegated(inner, err, port, o.PortSpace)
}

// enqueueKernel queues a peer's request for Accept, or rejects it if the queue is full or closed.
func (l *listener) enqueueKernel(r adapter.ConnectorConn, o *ListenOptions) {
	m := l.m
	attr, _, err := r.Attr(verbs.StateRTR)
	private := r.Peer().Private
	if err == nil && o.PortSpace == SDP {
		private, err = unpackHello(private, r.Remote(), r.Local())
	}
	m.mu.Lock()
	full := err != nil || l.closed || m.closed || l.queue.Len() >= o.Backlog
	if !full {
		in := &incomingRequest{l: l, peer: netip.AddrPortFrom(r.Remote().Addr(), rocePort), src: r.Remote(), private: private, kernel: r,
			params: kernelParams(r, &attr)}
		in.queueElem = l.queue.PushBack(in)
		l.wakeAcceptor()
	}
	m.mu.Unlock()
	if full {
		_ = r.Reject(nil)
	}
}

// kernelParams returns the parameters of the peer.
func kernelParams(c adapter.ConnectorConn, attr *verbs.QPAttr) Params {
	p := c.Peer()
	return Params{
		Transport: verbs.RC, QPN: p.QPN, PSN: attr.RQPSN, ResponderResources: p.Reads.Served, InitiatorDepth: p.Reads.Issued,
		RetryCount: p.Retries, RNRRetry: p.RNRRetries, FlowControl: p.FlowControl, SRQ: p.SRQ, AckTimeout: verbs.AckTimeout(attr.Timeout),
		MTU: attr.PathMTU, TrafficClass: attr.AV.TrafficClass, FlowLabel: attr.AV.FlowLabel, HopLimit: attr.AV.HopLimit, SL: attr.AV.SL, PKey: 0xffff,
	}
}

// acceptKernel accepts a request with qp.
func (r *Request) acceptKernel(ctx context.Context, qp verbs.QP, o *AcceptOptions) (*Conn, error) {
	in := r.in
	m := in.l.m
	attr, err := m.checkKernel(qp, &o.ConnectOptions, o.PrivateData, mad.REPPrivateLen)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	err = in.claim()
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	param := m.describeKernel(qp, &attr, o.PrivateData)
	param.Reads.Served, param.Reads.Issued = min(r.InitiatorDepth, param.Reads.Served), min(r.ResponderResources, param.Reads.Issued)
	c := m.newKernelConn(in.kernel, qp, in.private, r.Params)
	err = initQP(qp, remoteAccess(&o.ConnectOptions, param.Reads.Served), o.Receives, o.Prepare)
	if err == nil {
		err = c.modifyKernel(&attr, &o.ConnectOptions, param.Reads)
	}
	if err != nil {
		_ = in.kernel.Reject(nil)
		return nil, err
	}
	if err := in.kernel.Accept(ctx, param); err != nil {
		modifyToErr(qp)
		in.kernel.Close()
		return nil, kernelError(ctx, err)
	}
	return c, c.attachKernel()
}

// dialKernel connects qp to a listener.
func (m *Manager) dialKernel(ctx context.Context, addr netip.AddrPort, qp verbs.QP, o *DialOptions) (*Conn, error) {
	addr = hostaddr.CanonicalPort(addr)
	if !addr.Addr().IsValid() {
		return nil, fmt.Errorf("%w: no address", verbs.ErrInvalid)
	}
	if o.UDPPort != 0 && o.UDPPort != rocePort {
		return nil, fmt.Errorf("%w: UDP port %d of the peer: the kernel sends to %d only", verbs.ErrUnsupported, o.UDPPort, rocePort)
	}
	setDefault(&o.PortSpace, TCP)
	if err := checkPortSpace("DialOptions", o.PortSpace); err != nil {
		return nil, err
	}
	attr, err := m.checkKernel(qp, &o.ConnectOptions, o.PrivateData, maxPrivateData(o.PortSpace, mad.REQPrivateLen))
	if err != nil {
		return nil, err
	}
	private := o.PrivateData
	if o.PortSpace == SDP {
		if private, err = packHello(private); err != nil {
			return nil, err
		}
	}
	conn, err := m.kernel.Resolve(ctx, kernelSpace(o.PortSpace), addr, o.LocalPort, qp.Type())
	if err != nil {
		return nil, kernelError(ctx, err)
	}
	param := m.describeKernel(qp, &attr, private)
	param.AckTimeout = o.AckTimeout
	c := m.newKernelConn(conn, qp, nil, Params{})
	if err = initQP(qp, remoteAccess(&o.ConnectOptions, param.Reads.Served), o.Receives, o.Prepare); err == nil {
		if err = conn.Connect(ctx, param); err != nil {
			err = kernelError(ctx, err)
		} else {
			err = c.establishKernel(&attr, o, param.Reads)
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, c.attachKernel()
}

// establishKernel moves the queue pair of a dial to StateRTS by the reply, and confirms the reply.
func (c *Conn) establishKernel(attr *verbs.QPAttr, o *DialOptions, asked adapter.Reads) error {
	peer := c.kernel.Peer()
	at, _, err := c.kernel.Attr(verbs.StateRTR)
	if err == nil {
		c.params, c.private = kernelParams(c.kernel, &at), peer.Private
		reads := adapter.Reads{Served: min(peer.Reads.Issued, asked.Served), Issued: min(peer.Reads.Served, asked.Issued)}
		err = c.modifyKernel(attr, &o.ConnectOptions, reads)
	}
	if err == nil {
		err = c.kernel.Establish()
	}
	if err != nil {
		modifyToErr(c.qp)
		_ = c.kernel.Reject(nil)
	}
	return err
}

// kernelError returns the error of Dial or Accept for that of the kernel.
func kernelError(ctx context.Context, err error) error {
	var rejection *adapter.ConnectorRejection
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &rejection):
		return &RejectError{Reason: Reason(rejection.Reason), PrivateData: rejection.Private}
	case errors.Is(err, verbs.ErrClosed):
		return ErrClosed
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENODEV):
		return err // the caller's mistake, or a device that is not of this network namespace
	}
	return newUnreachable(err)
}

// checkKernel validates the queue pair and the options of a connection, and returns the attributes that
// the options select.
func (m *Manager) checkKernel(qp verbs.QP, o *verbs.ConnectOptions, private []byte, limit int) (attr verbs.QPAttr, err error) {
	switch {
	case m.isClosed():
		return attr, ErrClosed
	case qp == nil:
		return attr, fmt.Errorf("%w: nil queue pair", verbs.ErrInvalid)
	case qp.Type() != verbs.RC:
		return attr, fmt.Errorf("%w: queue pair type %v", errNoKernel, qp.Type())
	case o.MTU != 0 && o.MTU > m.port.ActiveMTU:
		return attr, fmt.Errorf("%w: ConnectOptions.MTU: %d, the port's active MTU is %d", verbs.ErrLimit, o.MTU.Bytes(), m.port.ActiveMTU.Bytes())
	}
	if err := checkPrivateData(private, limit); err != nil {
		return attr, err
	}
	return o.QPAttr(verbs.RC)
}

// describeKernel returns the parameters of qp with the attributes that the options select.
func (m *Manager) describeKernel(qp verbs.QP, attr *verbs.QPAttr, private []byte) adapter.ConnectorParam {
	credits, shared := creditsAndSRQ(qp)
	served, issued := m.limitRdAtomic(attr)
	return adapter.ConnectorParam{
		QPN: qp.Num(), Reads: adapter.Reads{Served: served, Issued: issued}, FlowControl: credits, SRQ: shared,
		Retries: attr.RetryCnt, RNRRetries: attr.RNRRetry, Private: private,
	}
}

func (m *Manager) newKernelConn(conn adapter.ConnectorConn, qp verbs.QP, private []byte, p Params) *Conn {
	return &Conn{
		m: m, kernel: conn, qp: qp, local: conn.Local(), remote: conn.Remote(), adapter: netip.AddrPortFrom(conn.Remote().Addr(), rocePort),
		params: p, private: private, done: make(chan struct{}), released: make(chan struct{}),
	}
}

// modifyKernel moves the queue pair to StateRTS by the kernel's attributes and the options.
func (c *Conn) modifyKernel(attr *verbs.QPAttr, o *verbs.ConnectOptions, reads adapter.Reads) error {
	toRTR, receiveMask, err := c.kernel.Attr(verbs.StateRTR)
	if err != nil {
		return err
	}
	toRTR.MinRNRTimer, toRTR.MaxDestRdAtomic = attr.MinRNRTimer, reads.Served
	if o.MTU != 0 {
		toRTR.PathMTU = min(toRTR.PathMTU, o.MTU)
	}
	if o.Access != 0 {
		toRTR.AccessFlags = o.Access
		receiveMask |= verbs.AttrAccessFlags
	}
	if err := c.qp.Modify(toRTR, receiveMask|verbs.AttrState); err != nil {
		return err
	}
	toRTS, sendMask, err := c.kernel.Attr(verbs.StateRTS)
	if err != nil {
		return err
	}
	toRTS.MaxRdAtomic = reads.Issued
	if o.AckTimeout != 0 {
		toRTS.Timeout = attr.Timeout
	}
	if o.Retries != 0 {
		toRTS.RetryCnt = attr.RetryCnt
	}
	return c.qp.Modify(toRTS, sendMask|verbs.AttrState)
}

// attachKernel registers the connection with the manager and for its end.
func (c *Conn) attachKernel() error {
	m := c.m
	m.mu.Lock()
	closed := m.closed
	if !closed {
		c.id = m.addStreamHandler(c)
	}
	m.mu.Unlock()
	if closed {
		c.terminate(ErrClosed, nil)
		c.kernel.Close()
		return ErrClosed
	}
	c.kernel.OnEnd(c.onKernelEnd)
	return nil
}

// onKernelEnd handles the peer's end of the connection, or the reply to Disconnect, and frees the
// kernel's part.
func (c *Conn) onKernelEnd(err error) {
	c.removeKernel()
	c.terminate(cmp.Or(kernelEndCause(err), error(ErrDisconnected)), nil)
	_ = c.kernel.Disconnect() // confirms the end if the peer has requested it
	c.markReleased(err != nil)
	c.kernel.Close()
}

func kernelEndCause(err error) error {
	if err == nil {
		return nil
	}
	return newUnreachable(err)
}

func (c *Conn) removeKernel() {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	delete(c.m.handlers, c.id)
}

// disconnectKernel ends a connection and waits for the peer's confirmation.
func (c *Conn) disconnectKernel(ctx context.Context, private []byte) error {
	if len(private) > 0 {
		return &Error{Op: "disconnect", Peer: c.remote, Err: verbs.ErrUnsupported, Detail: "the kernel sends no private data at the end of a connection"}
	}
	c.terminate(ErrClosed, nil)
	c.removeKernel()
	if err := c.kernel.Disconnect(); err != nil {
		c.markReleased(false) // it has ended
	}
	return c.awaitRelease(ctx)
}
