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
)

// On a device with iWARP connections are set up by the request and reply of MPA on TCP ports, so that
// there are no messages of the InfiniBand communication manager: neither datagrams (SIDR) nor queue
// pairs outside of the device, no header before private data, and no private data with the end of a
// connection. Port spaces share the TCP ports of the address. The peer may be a program of librdmacm.

// maxStreamPrivateData is the maximum private data of a request or reply that Linux's siw accepts.
const maxStreamPrivateData = 252

// errNoStream is the cause of calls that iWARP does not have.
var errNoStream = fmt.Errorf("%w: iWARP has connections of the device's own queue pairs of type RC only", verbs.ErrUnsupported)

// newStreamManager creates the manager of a device with iWARP.
func newStreamManager(dev verbs.Device, o Options, streams adapter.Streams) (*Manager, error) {
	m, err := newDelegatedManager(dev, o)
	if err != nil {
		return nil, err
	}
	if err := streams.AddManager(); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	m.streams = streams
	return m, nil
}

// A streamState is the part of a manager that only iWARP needs. Manager.mu guards it.
type streamState struct {
	ids                           uint32 // of requests and connections so far
	requests, connected, rejected uint64
}

// addStreamHandler returns the identifier of a request or connection, which Close notifies.
// Manager.mu must be held.
func (m *Manager) addStreamHandler(h eventHandler) uint32 {
	m.stream.ids++
	m.handlers[m.stream.ids] = h
	return m.stream.ids
}

// closeStreams is Close of a manager of streams.
func (m *Manager) closeStreams() error {
	m.closeListeners()
	m.mu.Lock()
	var unanswered []*incomingRequest
	for _, h := range m.handlers {
		if in, ok := h.(*incomingRequest); ok {
			unanswered = append(unanswered, in)
		}
	}
	m.mu.Unlock()
	m.closeHandlers()
	for _, in := range unanswered {
		_ = in.stream.Reject(nil)
	}
	m.streams.RemoveManager()
	return nil
}

// listenStream starts a listener on a TCP port.
func (m *Manager) listenStream(port uint16, o *ListenOptions) (*listener, error) {
	l := newDelegatedListener(m)
	inner, err := m.streams.Listen(port, func(r adapter.StreamRequest) { l.enqueueStream(r, o.Backlog) }, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		l.markClosed() // the device may have been closed
	})
	return l.startDelegated(inner, err, port, o.PortSpace)
}

// enqueueStream queues a peer's request for Accept, or rejects it if the queue is full or closed.
func (l *listener) enqueueStream(r adapter.StreamRequest, backlog int) {
	m := l.m
	m.mu.Lock()
	full := l.closed || m.closed || l.queue.Len() >= backlog
	if !full {
		reads := r.Reads()
		in := &incomingRequest{
			l: l, peer: adapterOf(r.Remote()), src: r.Remote(), private: r.Private(), stream: r,
			params: Params{Transport: verbs.RC, ResponderResources: reads.Served, InitiatorDepth: reads.Issued, MTU: m.port.ActiveMTU, HopLimit: 64},
		}
		in.id = m.addStreamHandler(in)
		in.queueElem = l.queue.PushBack(in)
		m.stream.requests++
		l.wakeAcceptor()
	} else {
		m.stream.rejected++
	}
	m.mu.Unlock()
	if full {
		_ = r.Reject(nil)
	}
}

// acceptStream accepts a request with qp.
func (r *Request) acceptStream(qp verbs.QP, o *AcceptOptions) (*Conn, error) {
	in := r.in
	m := in.l.m
	attr, err := m.checkStream(qp, &o.ConnectOptions, o.PrivateData)
	if err != nil {
		return nil, err
	}
	served, issued := m.limitRdAtomic(&attr)
	m.mu.Lock()
	err = in.claim()
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	conn, err := in.stream.Accept(adapter.Reads{Served: served, Issued: issued}, o.PrivateData)
	if errors.Is(err, adapter.ErrStreamEnded) {
		return nil, ErrWithdrawn
	}
	if err != nil {
		return nil, err
	}
	if err := initQP(qp, remoteAccess(&o.ConnectOptions, served), o.Receives, o.Prepare); err != nil {
		conn.Close()
		return nil, err
	}
	c := m.newStreamConn(conn, qp, r.LocalAddr(), r.RemoteAddr(), in.private, r.Params)
	return c, c.attachStream(conn, &attr, o.Access)
}

// dialStream connects qp to a listener.
func (m *Manager) dialStream(ctx context.Context, addr netip.AddrPort, qp verbs.QP, o *DialOptions) (*Conn, error) {
	addr = hostaddr.CanonicalPort(addr)
	if !addr.Addr().IsValid() {
		return nil, fmt.Errorf("%w: no address", verbs.ErrInvalid)
	}
	setDefault(&o.PortSpace, TCP)
	if err := checkPortSpace("DialOptions", o.PortSpace); err != nil {
		return nil, err
	}
	attr, err := m.checkStream(qp, &o.ConnectOptions, o.PrivateData)
	if err != nil {
		return nil, err
	}
	served, issued := m.limitRdAtomic(&attr)
	if err := initQP(qp, remoteAccess(&o.ConnectOptions, served), o.Receives, o.Prepare); err != nil {
		return nil, err
	}
	conn, err := m.streams.Dial(ctx, o.LocalPort, addr, adapter.Reads{Served: served, Issued: issued}, o.PrivateData)
	if err != nil {
		return nil, streamDialError(ctx, err)
	}
	reads := conn.Reads()
	c := m.newStreamConn(conn, qp, conn.Local(), addr, conn.Private(), Params{
		Transport: verbs.RC, ResponderResources: reads.Issued, InitiatorDepth: reads.Served, MTU: m.port.ActiveMTU, HopLimit: 64,
	})
	return c, c.attachStream(conn, &attr, o.Access)
}

// streamDialError returns the error of Dial for that of the set-up.
func streamDialError(ctx context.Context, err error) error {
	var rejection *adapter.StreamRejection
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &rejection):
		return &RejectError{Reason: ConsumerReject, PrivateData: append([]byte(nil), rejection.Private...)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &RejectError{Reason: InvalidServiceID}
	}
	return newUnreachable(err)
}

// checkStream validates the queue pair and the options of a connection, and returns the attributes that
// the options select.
func (m *Manager) checkStream(qp verbs.QP, o *verbs.ConnectOptions, private []byte) (attr verbs.QPAttr, err error) {
	switch {
	case m.isClosed():
		return attr, ErrClosed
	case qp == nil:
		return attr, fmt.Errorf("%w: nil queue pair", verbs.ErrInvalid)
	case qp.Type() != verbs.RC:
		return attr, fmt.Errorf("%w: queue pair type %v", errNoStream, qp.Type())
	}
	if err := checkPrivateData(private, maxStreamPrivateData); err != nil {
		return attr, err
	}
	return o.QPAttr(verbs.RC)
}

func (m *Manager) newStreamConn(conn adapter.StreamConn, qp verbs.QP, local, remote netip.AddrPort, private []byte, p Params) *Conn {
	return &Conn{
		m: m, qp: qp, local: local, remote: remote, adapter: adapterOf(conn.Remote()), params: p, private: private,
		done: make(chan struct{}), released: make(chan struct{}),
	}
}

// adapterOf returns the address of the adapter at the other end of a connection. Its port is unknown.
func adapterOf(end netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(end.Addr(), 0) }

// attachStream moves the queue pair to StateRTS and gives it the connection.
func (c *Conn) attachStream(conn adapter.StreamConn, attr *verbs.QPAttr, access verbs.AccessFlags) error {
	m, reads := c.m, conn.Reads()
	err := conn.Claim(c.qp)
	if err == nil {
		err = modifyToRTS(c.qp, verbs.QPAttr{
			PathMTU: m.port.ActiveMTU, DestQPN: 1, AccessFlags: remoteAccess(&verbs.ConnectOptions{Access: access}, reads.Served),
			AV:          verbs.AHAttr{DGID: verbs.GIDFromAddr(conn.Remote().Addr()), UDPPort: conn.Remote().Port(), PortNum: 1},
			MaxRdAtomic: reads.Issued, MaxDestRdAtomic: reads.Served,
			MinRNRTimer: attr.MinRNRTimer, Timeout: attr.Timeout, RetryCnt: attr.RetryCnt, RNRRetry: attr.RNRRetry,
		}, access != 0)
	}
	if err != nil {
		conn.Close()
		return err
	}
	m.mu.Lock()
	c.id = m.addStreamHandler(c)
	m.stream.connected++
	m.mu.Unlock()
	if err := conn.Attach(c.qp, c.onStreamEnd); err != nil {
		conn.Close()
		c.onStreamEnd()
		return cmp.Or(c.Err(), err)
	}
	return nil
}

// onStreamEnd handles the end of the TCP connection.
func (c *Conn) onStreamEnd() {
	c.m.mu.Lock()
	delete(c.m.handlers, c.id)
	c.m.mu.Unlock()
	cause := ErrDisconnected
	if c.m.streams.Closed() {
		cause = ErrClosed
	}
	c.terminate(cause, nil)
	c.markReleased(false)
}

// disconnectStream ends a connection: the queue pair enters StateErr, which closes the TCP connection.
func (c *Conn) disconnectStream(private []byte) error {
	c.terminate(ErrClosed, nil)
	c.m.mu.Lock()
	delete(c.m.handlers, c.id)
	c.m.mu.Unlock()
	c.markReleased(false)
	if len(private) > 0 {
		return &Error{Op: "disconnect", Peer: c.remote, Err: verbs.ErrUnsupported, Detail: "iWARP has no private data at the end of a connection; it has ended"}
	}
	return nil
}
