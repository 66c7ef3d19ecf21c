package cm

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A listener queues requests for Listener and UDListener until the application accepts them.
type listener struct {
	m         *Manager
	service   mad.ServiceID
	addr      netip.AddrPort
	queue     list.List     // of *incomingRequest, oldest first; like closed guarded by Manager.mu
	wake      chan struct{} // capacity 1; holds a token if queue may have an element
	done      chan struct{} // closed by markClosed
	closed    bool
	delegated adapter.StreamListener // of iWARP or of the kernel, or nil
}

// An incomingRequest is a peer's request from its arrival to its reply. The fields after id are
// guarded by Manager.mu.
type incomingRequest struct {
	l         *listener
	peer      netip.AddrPort // address of the peer's adapter
	src       netip.AddrPort // from RDMA-CM's header or SDP's Hello, if present
	params    Params         // for connection requests
	alternate bool           // the REQ has an alternate path
	private   []byte
	id        uint32
	stream    adapter.StreamRequest // with iWARP, or nil
	kernel    adapter.ConnectorConn // of the kernel, or nil

	queueElem *list.Element // in l.queue until Accept dequeues the request
	resolved  bool          // withdrawn or replied to
	answered  bool
}

// listen starts a listener. Port 0 selects a free ephemeral port.
func (m *Manager) listen(space PortSpace, port uint16, s protocol.ServiceOptions) (*listener, error) {
	if m.streams != nil {
		return nil, m.listenError(port, errNoStream)
	}
	if m.kernel != nil {
		return nil, m.listenError(port, errNoKernel)
	}
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
		err := m.startService(id, s)
		if err == nil {
			l := &listener{
				m: m, service: id, addr: netip.AddrPortFrom(m.addr.Addr(), p),
				wake: make(chan struct{}, 1), done: make(chan struct{}),
			}
			m.listeners[id] = l
			return l, nil
		}
		if port != 0 || tries == 1<<16 || !errors.Is(err, ErrInUse) {
			return nil, m.listenError(port, err)
		}
	}
}

func (m *Manager) listenError(port uint16, err error) error {
	return &Error{Op: "listen", Peer: netip.AddrPortFrom(m.addr.Addr(), port), Err: err}
}

// nextEphemeralPort returns the next port of the dynamic range (RFC 6335). Ports advance by a
// random odd step from a random start, so a port is reused only after all others, and a late
// request for a closed listener does not reach another service.
func (m *Manager) nextEphemeralPort() uint16 {
	const first, count = 49152, 1<<16 - 49152
	if m.ephemeralStep == 0 {
		m.ephemeralPort = uint16(m.options.Rand() % count)
		m.ephemeralStep = uint16(m.options.Rand()%count) | 1 // odd, so coprime to count (2^14)
	}
	m.ephemeralPort = (m.ephemeralPort + m.ephemeralStep) % count
	return first + m.ephemeralPort
}

// enqueueRequest queues a peer's request for Accept. m.mu must be held.
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
	in.queueElem = l.queue.PushBack(in)
	l.wakeAcceptor()
}

// rejectLargeMTU rejects a REQ whose MTU exceeds the path MTU to the peer and proposes one that
// fits. It reports whether it rejected the REQ.
func (m *Manager) rejectLargeMTU(e *protocol.Event) bool {
	requested := verbs.MTU(e.REQ.MTU)
	fitting := adapter.FitPathMTU(m.dev, ahAttrTo(e.Peer), requested)
	if fitting == requested {
		return false
	}
	m.machine.Reject(m.now(), e.ID, mad.REJ{Reason: InvalidMTU, Info: []byte{uint8(fitting) << 4}})
	return true
}

func (l *listener) wakeAcceptor() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// accept blocks until a request is queued, the listener is closed or ctx is done.
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
		vtime.WaitUntil(func() bool { return len(l.wake) > 0 || vtime.IsClosed(l.done) || ctx.Err() != nil })
		select {
		case <-l.wake:
		case <-l.done:
			return nil, &Error{Op: "accept", Peer: l.addr, Err: ErrClosed}
		case <-ctx.Done():
			return nil, &Error{Op: "accept", Peer: l.addr, Err: ctx.Err()}
		}
	}
}

// dequeue removes the oldest request from the queue and returns it, or nil if the queue is empty.
func (l *listener) dequeue() *incomingRequest {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.closed {
		return nil
	}
	first := l.queue.Front()
	if first == nil {
		return nil
	}
	in := first.Value.(*incomingRequest)
	in.removeFromQueue()
	if l.queue.Len() > 0 {
		l.wakeAcceptor()
	}
	return in
}

// close closes the listener and rejects all requests that Accept has not returned.
func (l *listener) close() error {
	if l.delegated != nil {
		return l.closeDelegated()
	}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.listeners[l.service] != l {
		return nil
	}
	delete(l.m.listeners, l.service)
	l.m.unregisterService(l.service)
	l.m.machine.Unlisten(l.m.now(), l.service, l.m.isDelivered)
	l.m.dispatchAndFlush()
	l.markClosed()
	return nil
}

// isDelivered reports whether Accept has returned the request and the application may still
// reply. m.mu must be held.
func (m *Manager) isDelivered(id uint32) bool {
	in, ok := m.handlers[id].(*incomingRequest)
	return ok && in.queueElem == nil && !in.resolved
}

// markClosed withdraws all queued requests and wakes the goroutines blocked in accept. m.mu must
// be held.
func (l *listener) markClosed() {
	if l.closed {
		return
	}
	l.closed = true
	for l.queue.Len() > 0 {
		in := l.queue.Front().Value.(*incomingRequest)
		delete(l.m.handlers, in.id)
		in.handleClose()
	}
	close(l.done)
}

// removeFromQueue removes the request from the queue if it is queued.
func (in *incomingRequest) removeFromQueue() {
	if in.queueElem != nil {
		in.l.queue.Remove(in.queueElem)
		in.queueElem = nil
	}
}

// handleEvent implements eventHandler: every event before the reply withdraws the request.
func (in *incomingRequest) handleEvent(*protocol.Event) { in.handleClose() }

// handleClose implements eventHandler.
func (in *incomingRequest) handleClose() {
	in.resolved = true
	in.removeFromQueue()
}

// claim marks the request as replied to, or returns an error if it is resolved already.
// Manager.mu must be held.
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

// remoteAddr returns the source address of RDMA-CM's header or Hello, or else the adapter's
// address with port 0.
func (in *incomingRequest) remoteAddr() netip.AddrPort {
	if in.src.IsValid() {
		return in.src
	}
	return netip.AddrPortFrom(in.peer.Addr(), 0)
}

// A Listener accepts connection requests. A nil or zero Listener is closed.
type Listener struct{ l *listener }

// Listen listens for connection requests on port. Port 0 selects a free one.
func (m *Manager) Listen(port uint16, o ListenOptions) (*Listener, error) {
	m = m.orClosed()
	err := o.validate(TCP)
	if err == nil && o.NoRC && o.NoUC {
		err = fmt.Errorf("%w: ListenOptions.NoRC and NoUC exclude all connections", verbs.ErrInvalid)
	}
	if err != nil {
		return nil, m.listenError(port, err)
	}
	if m.streams != nil {
		l, err := m.listenStream(port, &o)
		if err != nil {
			return nil, err
		}
		return &Listener{l}, nil
	}
	if m.kernel != nil {
		l, err := m.listenKernel(port, &o)
		if err != nil {
			return nil, err
		}
		return &Listener{l}, nil
	}
	l, err := m.listen(o.PortSpace, port, protocol.ServiceOptions{RC: !o.NoRC, UC: !o.NoUC, Backlog: o.Backlog})
	if err != nil {
		return nil, err
	}
	return &Listener{l}, nil
}

// Accept blocks until a request arrives, which the caller must accept or reject. It returns
// ErrClosed after the listener or the manager is closed. A nil ctx is never done.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	in, err := l.orClosed().accept(ctx)
	if err != nil {
		return nil, err
	}
	return &Request{in: in, Params: in.params}, nil
}

// Addr returns the listener's address and port.
func (l *Listener) Addr() netip.AddrPort { return l.orClosed().addr }

// Close closes the listener and rejects requests that Accept has not returned. Established
// connections remain. Close is idempotent.
func (l *Listener) Close() error { return l.orClosed().close() }
