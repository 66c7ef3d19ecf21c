package cm

import (
	"container/list"
	"context"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// listener is what Listener and UDListener share: requests that wait for the
// program.
type listener struct {
	m       *Manager
	service mad.ServiceID
	addr    netip.AddrPort
	waiting list.List     // of *incoming, oldest first; guarded by the manager's lock, as ended
	wake    chan struct{} // holds a token if there may be some
	done    chan struct{} // closed with the listener
	closed  bool
}

// incomingRequest is a peer's request, from its arrival to its answer. What is below
// id is guarded by the manager's lock.
type incomingRequest struct {
	l         *listener
	peer      netip.AddrPort // its adapter
	src       netip.AddrPort // what it says of itself in RDMA-CM's header or Hello, if it has one
	params    Params         // of a request for a connection
	alternate bool           // it asks for an alternate path, too
	private   []byte
	id        uint32

	queueElem *list.Element // in l.waiting, until the program takes it
	resolved  bool          // withdrawn or answered
	answered  bool
}

// listen begins to listen. Port 0 means any that is free.
func (m *Manager) listen(space PortSpace, port uint16, s protocol.ServiceOptions) (*listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, &Error{Op: "listen", Err: ErrClosed}
	}
	for tries := 0; ; tries++ {
		p := port
		if p == 0 {
			p = m.nextEphemeralPort()
		}
		id := mad.ServiceIDOf(space, p)
		if m.machine.Listen(id, s) {
			l := &listener{
				m: m, service: id, addr: netip.AddrPortFrom(m.addr.Addr(), p),
				wake: make(chan struct{}, 1), done: make(chan struct{}),
			}
			m.listeners[id] = l
			return l, nil
		}
		if port != 0 || tries == 1<<16 {
			return nil, &Error{Op: "listen", Peer: netip.AddrPortFrom(m.addr.Addr(), port), Err: ErrInUse}
		}
	}
}

// nextEphemeralPort returns the next port of the dynamic ones of RFC 6335: in steps from a
// random one, so that the port of a closed listener is reused only after all others:
// a late request for it does not reach another service.
func (m *Manager) nextEphemeralPort() uint16 {
	const first, count = 49152, 1<<16 - 49152
	if m.ephemeralStep == 0 {
		m.ephemeralPort = uint16(m.options.Rand() % count)
		m.ephemeralStep = uint16(m.options.Rand()%count) | 1 // without a common divisor
	}
	m.ephemeralPort = (m.ephemeralPort + m.ephemeralStep) % count
	return first + m.ephemeralPort
}

// enqueueRequest puts a peer's request before the program. The lock is held.
func (m *Manager) enqueueRequest(e *protocol.Event, id mad.ServiceID) {
	l := m.listeners[id]
	if l == nil {
		m.machine.Abandon(m.now(), e.ID)
		return
	}
	if e.Kind == protocol.EventRequest && m.rejectLargeMTU(e) {
		return
	}
	in := &incomingRequest{l: l, peer: e.Peer, src: e.CMA.Src, id: e.ID, private: append([]byte(nil), e.Private...)}
	if e.Kind == protocol.EventRequest {
		in.params = paramsFromREQ(&e.REQ)
		in.alternate = e.REQ.Alternate.LocalGID != [16]byte{}
	}
	m.handlers[e.ID] = in
	in.queueElem = l.waiting.PushBack(in)
	l.wakeAcceptor()
}

// rejectLargeMTU rejects a request for an MTU above that of the path to the peer, and tells the
// peer what would fit. It reports whether it did.
func (m *Manager) rejectLargeMTU(e *protocol.Event) bool {
	asked := verbs.MTU(e.REQ.MTU)
	fits := verbs.FitPathMTU(m.dev, ahAttrTo(e.Peer), asked)
	if fits == asked {
		return false
	}
	m.machine.Reject(m.now(), e.ID, mad.REJ{Reason: InvalidMTU, Info: []byte{uint8(fits) << 4}})
	return true
}

func (l *listener) wakeAcceptor() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// accept waits for a request.
func (l *listener) accept(ctx context.Context) (*incomingRequest, error) {
	ctx = orBackground(ctx)
	for {
		if in := l.dequeue(); in != nil {
			return in, nil
		}
		select {
		case <-l.done:
			return nil, &Error{Op: "accept", Peer: l.addr, Err: ErrClosed}
		default:
		}
		select {
		case <-l.wake:
		case <-l.done:
			return nil, &Error{Op: "accept", Peer: l.addr, Err: ErrClosed}
		case <-ctx.Done():
			return nil, &Error{Op: "accept", Peer: l.addr, Err: ctx.Err()}
		}
	}
}

// dequeue returns the oldest request that is still wanted, nil if there is none.
func (l *listener) dequeue() *incomingRequest {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.closed {
		return nil
	}
	first := l.waiting.Front()
	if first == nil {
		return nil
	}
	in := first.Value.(*incomingRequest)
	in.removeFromQueue()
	if l.waiting.Len() > 0 {
		l.wakeAcceptor()
	}
	return in
}

// close ends the listener and rejects the requests that the program has not
// got.
func (l *listener) close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.listeners[l.service] != l {
		return nil
	}
	delete(l.m.listeners, l.service)
	l.m.machine.Unlisten(l.m.now(), l.service, l.m.isDelivered)
	l.m.dispatchAndFlush()
	l.markClosed()
	return nil
}

// isDelivered reports whether the program has got a request and may still answer it.
// The lock is held.
func (m *Manager) isDelivered(id uint32) bool {
	in, ok := m.handlers[id].(*incomingRequest)
	return ok && in.queueElem == nil && !in.resolved
}

// markClosed wakes who waits. The lock is held.
func (l *listener) markClosed() {
	if l.closed {
		return
	}
	l.closed = true
	for l.waiting.Len() > 0 {
		in := l.waiting.Front().Value.(*incomingRequest)
		delete(l.m.handlers, in.id)
		in.handleClose()
	}
	close(l.done)
}

// removeFromQueue takes a request out of the queue, if it is in there.
func (in *incomingRequest) removeFromQueue() {
	if in.queueElem != nil {
		in.l.waiting.Remove(in.queueElem)
		in.queueElem = nil
	}
}

// handleEvent implements party, for requests that are not answered yet: they are
// withdrawn.
func (in *incomingRequest) handleEvent(*protocol.Event) { in.handleClose() }

// handleClose implements party.
func (in *incomingRequest) handleClose() {
	in.resolved = true
	in.removeFromQueue()
}

// claim takes a request to answer it. The lock is held.
func (in *incomingRequest) claim() error {
	switch {
	case in.l.m.closed:
		return ErrClosed
	case in.answered:
		return ErrAnswered
	case in.resolved:
		return ErrWithdrawn
	}
	in.resolved, in.answered = true, true
	delete(in.l.m.handlers, in.id)
	return nil
}

// remoteAddr is the address in RDMA-CM's header or Hello, or else the adapter's.
func (in *incomingRequest) remoteAddr() netip.AddrPort {
	if in.src.IsValid() {
		return in.src
	}
	return netip.AddrPortFrom(in.peer.Addr(), 0)
}

// Listener takes requests for connections. Nil and the zero value are closed.
type Listener struct{ l *listener }

// Listen begins to take requests for connections on a port; 0 means any that is
// free.
func (m *Manager) Listen(port uint16, o ListenOptions) (*Listener, error) {
	m = m.orClosed()
	setDefault(&o.PortSpace, TCP)
	setDefault(&o.Backlog, DefaultBacklog)
	l, err := m.listen(o.PortSpace, port, protocol.ServiceOptions{RC: !o.NoRC, UC: !o.NoUC, Backlog: o.Backlog})
	if err != nil {
		return nil, err
	}
	return &Listener{l}, nil
}

// Accept waits for a request, which must be accepted or rejected. It returns
// ErrClosed once the listener or the manager is closed.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	in, err := l.orClosed().accept(ctx)
	if err != nil {
		return nil, err
	}
	return &Request{in: in, Params: in.params}, nil
}

// Addr is the address and port that peers dial.
func (l *Listener) Addr() netip.AddrPort { return l.orClosed().addr }

// Close ends the listener: requests that Accept has not returned are rejected,
// connections stay. Closing twice is safe.
func (l *Listener) Close() error { return l.orClosed().close() }
