package cm

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A Manager establishes and releases the connections of a device. Its methods are safe for
// concurrent use. A nil or zero Manager behaves as a closed one.
type Manager struct {
	dev            verbs.Device
	options        Options
	addr           netip.AddrPort // of the adapter
	port           verbs.PortAttr
	limits         verbs.DeviceAttr
	gsi            *gsi              // queue pair 1; nil with iWARP
	streams        adapter.Streams   // set-up of connections with iWARP, or nil
	kernel         adapter.Connector // set-up of connections by the kernel, or nil
	services       adapter.Services  // of an address that other devices share, or nil
	openedAt       time.Time
	done           chan struct{} // closed when the goroutine has returned
	closeOnce      sync.Once
	removeCounters func() // removes the counters from the device

	refusals refusalQueue // of queue pair 1; drained by the goroutine

	mu            sync.Mutex
	machine       *protocol.Machine
	handlers      map[uint32]eventHandler // by communication ID
	listeners     map[mad.ServiceID]*listener
	awaitingRTU   map[verbs.QP]uint32 // queue pairs of connections being accepted
	ephemeralPort uint16              // last port of nextEphemeralPort, relative to the first dynamic port
	ephemeralStep uint16              // increment of ephemeralPort; 0 before the first use
	wakeAt        protocol.Time       // time at which the goroutine wakes at the latest, 0 for never
	wake          context.CancelFunc
	foreign       uint64 // datagrams whose source is not a queue pair 1
	unsent        uint64 // datagrams that could not be sent
	stream        streamState
	closed        bool
}

// An eventHandler receives the events of one connection or request. Methods are called with
// Manager.mu held and must not call the Manager.
type eventHandler interface {
	handleEvent(*protocol.Event)
	handleClose() // the manager was closed
}

// New creates the manager of a device. The device must not have a queue pair of type GSI yet.
func New(dev verbs.Device, o Options) (*Manager, error) {
	if err := adapter.CheckDevice(dev); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	if err := o.validate(); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	if streams := adapter.StreamsOf(dev); streams != nil {
		return newStreamManager(dev, o, streams)
	}
	switch kernel, err := adapter.OpenConnector(dev); {
	case err != nil:
		return nil, &Error{Op: "open manager", Err: err}
	case kernel != nil:
		return newKernelManager(dev, o, kernel)
	}
	port, err := dev.QueryPort(1)
	if err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	gid, err := dev.QueryGID(1, 0)
	if err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	udpPort := port.UDPPort
	if udpPort == rocePort {
		udpPort = 0
	}
	limits := dev.QueryDevice()
	services, prefix, prefixBits := sharedServices(dev)
	config := protocol.Config{
		Rand: o.Rand, GUID: limits.NodeGUID, GID: gid.GID, UDPPort: udpPort, MaxMTU: uint8(port.ActiveMTU),
		IDPrefix: prefix, IDPrefixBits: prefixBits, MaxConns: o.MaxConns, ServiceTimeout: timeoutCode(o.ServiceTimeout),
	}
	if services != nil {
		config.OnConnect, config.OnRelease = services.AddConn, services.RemoveConn
	}
	m := &Manager{
		dev: dev, options: o, port: port, limits: limits, services: services, openedAt: vtime.Now(), done: make(chan struct{}),
		addr:     netip.AddrPortFrom(gid.GID.Addr(), port.UDPPort),
		machine:  protocol.New(config),
		handlers: make(map[uint32]eventHandler), listeners: make(map[mad.ServiceID]*listener), awaitingRTU: make(map[verbs.QP]uint32),
		wake: func() {},
	}
	if m.gsi, err = openGSI(dev, o.Receives, o.Rand()&0xffffff); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	if err := m.addToAddress(); err != nil {
		return nil, &Error{Op: "open manager", Err: errors.Join(err, m.gsi.close())}
	}
	m.watchRefusals()
	m.removeCounters = m.registerCounters()
	vtime.Go(m.run)
	return m, nil
}

// rocePort is the IANA-assigned UDP port of RoCE v2, the default of every adapter.
const rocePort = 4791

// Addr returns the address of the device and the UDP port of its adapter.
func (m *Manager) Addr() netip.AddrPort { return m.orClosed().addr }

// now returns the time since New, which is never 0.
func (m *Manager) now() protocol.Time { return protocol.Time(vtime.Since(m.openedAt)) + 1 }

// run receives datagrams and serves timers until the manager is closed.
func (m *Manager) run() {
	defer close(m.done)
	for {
		ctx, cancel := m.sleepContext()
		wcs, err := m.gsi.waitRecv(ctx)
		timeout := ctx.Err() != nil
		cancel()
		if err != nil && !timeout || m.handleDatagrams(wcs) != nil {
			m.closeHandlers()
			return
		}
	}
}

// sleepContext returns a context that is done at the next deadline, or earlier when m.wake is
// called.
func (m *Manager) sleepContext() (ctx context.Context, cancel context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	deadline := m.machine.Deadline()
	if deadline == 0 {
		ctx, cancel = context.WithCancel(context.Background())
	} else {
		ctx, cancel = vtime.WithTimeout(context.Background(), time.Duration(deadline-m.now()))
	}
	m.wakeAt, m.wake = deadline, cancel
	if m.refusals.setWake(cancel) || m.closed {
		cancel()
	}
	return ctx, cancel
}

// handleDatagrams handles received datagrams, refusals and expired timers, and reposts the
// receives.
func (m *Manager) handleDatagrams(wcs []verbs.WC) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	now := m.now()
	for i := range wcs {
		from, b, ok := m.gsi.parseDatagram(&wcs[i])
		if !ok {
			m.foreign++
			continue
		}
		m.machine.Handle(now, from, b)
		m.dispatchAndFlush()
	}
	for _, r := range m.refusals.drain() {
		m.machine.HandleRefusal(now, r.Peer, r)
	}
	m.machine.Advance(now)
	m.dispatchAndFlush()
	if len(wcs) == 0 {
		return nil
	}
	return m.gsi.repostRecvs(wcs)
}

// dispatchAndFlush delivers pending events, sends pending MADs and wakes the goroutine if the
// deadline moved earlier. m.mu must be held.
func (m *Manager) dispatchAndFlush() {
	for e, ok := m.machine.NextEvent(); ok; e, ok = m.machine.NextEvent() {
		m.dispatchEvent(e)
	}
	for d, ok := m.machine.NextDatagram(); ok; d, ok = m.machine.NextDatagram() {
		if err := m.gsi.send(d.To, &d.MAD); err != nil {
			m.unsent++ // recovered by a retransmission of either side
		}
	}
	if t := m.machine.Deadline(); t != 0 && (m.wakeAt == 0 || t < m.wakeAt) {
		m.wake()
	}
}

// dispatchEvent passes an event to its handler, and removes the handler if the event is final.
func (m *Manager) dispatchEvent(e *protocol.Event) {
	switch e.Kind {
	case protocol.EventRequest:
		m.enqueueRequest(e, e.REQ.ServiceID)
		return
	case protocol.EventSIDRRequest:
		m.enqueueRequest(e, e.SIDRReq.ServiceID)
		return
	}
	handler := m.handlers[e.ID]
	switch e.Kind {
	case protocol.EventReply, protocol.EventEstablished:
	default:
		delete(m.handlers, e.ID)
	}
	if handler != nil {
		handler.handleEvent(e)
	}
}

// Close closes the manager: it closes all listeners, rejects outstanding requests and sends a
// DREQ for each connection without waiting for the DREP. Close is idempotent.
func (m *Manager) Close() (err error) {
	m = m.orClosed()
	m.closeOnce.Do(func() {
		if m.streams != nil {
			err = m.closeStreams()
			return
		}
		if m.kernel != nil {
			err = m.closeKernel()
			return
		}
		m.removeCounters()
		m.removeFromAddress()
		m.mu.Lock()
		if !m.closed {
			m.machine.Close(m.now())
			m.dispatchAndFlush()
			m.closed = true
			m.wake()
		}
		m.mu.Unlock()
		vtime.WaitUntil(func() bool { return vtime.IsClosed(m.done) })
		<-m.done
		err = m.gsi.close()
	})
	return err
}

// closeHandlers notifies all handlers and listeners that the manager is closed. The goroutine
// calls it once before it returns.
func (m *Manager) closeHandlers() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for id, handler := range m.handlers {
		delete(m.handlers, id)
		handler.handleClose()
	}
	for id, l := range m.listeners {
		delete(m.listeners, id)
		l.markClosed()
	}
}

// wrapError wraps err in an *Error with the operation and the peer, unless it is one already.
func wrapError(op string, peer netip.AddrPort, err error, detail string) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Peer: peer, Err: err, Detail: detail}
}
