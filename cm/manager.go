package cm

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Manager makes and ends the connections of a device. All methods may be
// called from any goroutine. Nil and the zero value are managers that were closed.
type Manager struct {
	dev            verbs.Device
	options        Options
	addr           netip.AddrPort // of the adapter
	port           verbs.PortAttr
	limits         verbs.DeviceAttr
	gsi            *gsi
	openedAt       time.Time
	done           chan struct{} // closed when the goroutine has ended
	closeOnce      sync.Once
	removeCounters func() // takes the counters off the device

	refusals refusalQueue // of queue pair 1, for the goroutine

	mu            sync.Mutex
	machine       *protocol.Machine
	handlers      map[uint32]eventHandler // who is told about a connection or request
	listeners     map[mad.ServiceID]*listener
	awaitingRTU   map[verbs.QP]uint32 // connections that are being accepted
	ephemeralPort uint16              // of the listeners at any port, the last that was tried, from the first of them
	ephemeralStep uint16              // to the next; 0: none was tried
	wakeAt        protocol.Time       // when the goroutine wakes at the latest, 0 for never
	wake          context.CancelFunc
	foreign       uint64 // datagrams that are not from a queue pair 1
	unsent        uint64 // datagrams that could not be sent
	closed        bool
}

// eventHandler hears what happens to a connection or a request. The manager's lock is
// held, so it must not call back.
type eventHandler interface {
	handleEvent(*protocol.Event)
	handleClose() // the manager was closed
}

// New makes the manager of a device, which must have no queue pair of type GSI
// yet.
func New(dev verbs.Device, o Options) (*Manager, error) {
	if err := verbs.CheckDevice(dev); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	if err := o.validate(); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
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
	m := &Manager{
		dev: dev, options: o, port: port, limits: limits, openedAt: time.Now(), done: make(chan struct{}),
		addr: netip.AddrPortFrom(gid.GID.Addr(), port.UDPPort),
		machine: protocol.New(protocol.Config{
			Rand: o.Rand, GUID: limits.NodeGUID, GID: gid.GID, UDPPort: udpPort, MaxMTU: uint8(port.ActiveMTU),
			MaxConns: o.MaxConns, ServiceTimeout: o.ServiceTimeout,
		}),
		handlers: make(map[uint32]eventHandler), listeners: make(map[mad.ServiceID]*listener), awaitingRTU: make(map[verbs.QP]uint32),
		wake: func() {},
	}
	if m.gsi, err = openGSI(dev, o.Receives, o.Rand()&0xffffff); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	m.watchRefusals()
	m.removeCounters = m.registerCounters()
	go m.run()
	return m, nil
}

// rocePort is where adapters listen unless told otherwise.
const rocePort = 4791

// Addr is the address of the device and the UDP port of its adapter.
func (m *Manager) Addr() netip.AddrPort { return m.orClosed().addr }

// now is the time on the manager's clock, never 0.
func (m *Manager) now() protocol.Time { return protocol.Time(time.Since(m.openedAt)) + 1 }

// run receives datagrams and keeps the time until the manager is closed.
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

// sleepContext makes a context that ends when there is something to do.
func (m *Manager) sleepContext() (ctx context.Context, cancel context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	till := m.machine.Deadline()
	if till == 0 {
		ctx, cancel = context.WithCancel(context.Background())
	} else {
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(till-m.now()))
	}
	m.wakeAt, m.wake = till, cancel
	if m.refusals.setWake(cancel) || m.closed {
		cancel()
	}
	return ctx, cancel
}

// handleDatagrams handles datagrams and what is due.
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

// dispatchAndFlush tells what happened, sends what is to be sent, and wakes the
// goroutine if it would be late. The lock is held.
func (m *Manager) dispatchAndFlush() {
	for e, ok := m.machine.NextEvent(); ok; e, ok = m.machine.NextEvent() {
		m.dispatchEvent(e)
	}
	for d, ok := m.machine.NextDatagram(); ok; d, ok = m.machine.NextDatagram() {
		if err := m.gsi.send(d.To, &d.MAD); err != nil {
			m.unsent++ // it will be repeated, or the peer repeats its question
		}
	}
	if t := m.machine.Deadline(); t != 0 && (m.wakeAt == 0 || t < m.wakeAt) {
		m.wake()
	}
}

// dispatchEvent passes an event on.
func (m *Manager) dispatchEvent(e *protocol.Event) {
	switch e.Kind {
	case protocol.EventRequest:
		m.enqueueRequest(e, e.REQ.ServiceID)
		return
	case protocol.EventSIDRRequest:
		m.enqueueRequest(e, e.SIDRReq.ServiceID)
		return
	}
	p := m.handlers[e.ID]
	switch e.Kind {
	case protocol.EventReply, protocol.EventEstablished:
	default:
		delete(m.handlers, e.ID)
	}
	if p != nil {
		p.handleEvent(e)
	}
}

// Close ends the manager: listeners are closed, requests under way are
// rejected, peers of connections get a DREQ, whose answer is not waited for.
// Closing twice is safe.
func (m *Manager) Close() (err error) {
	m = m.orClosed()
	m.closeOnce.Do(func() {
		m.removeCounters()
		m.mu.Lock()
		if !m.closed {
			m.machine.Close(m.now())
			m.dispatchAndFlush()
			m.closed = true
			m.wake()
		}
		m.mu.Unlock()
		<-m.done
		err = m.gsi.close()
	})
	return err
}

// closeHandlers tells everyone that it is over. It runs once, at the end of the
// goroutine.
func (m *Manager) closeHandlers() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for id, p := range m.handlers {
		delete(m.handlers, id)
		p.handleClose()
	}
	for id, l := range m.listeners {
		delete(m.listeners, id)
		l.markClosed()
	}
}

// wrapError makes a context's end, a refusal or a failure the error of a call.
func wrapError(op string, peer netip.AddrPort, err error, detail string) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Peer: peer, Err: err, Detail: detail}
}
