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
	dev     verbs.Device
	options Options
	addr    netip.AddrPort // of the adapter
	port    verbs.PortAttr
	limits  verbs.DeviceAttr
	gsi     *gsi
	opened  time.Time
	done    chan struct{} // closed when the goroutine has ended
	closing sync.Once
	hide    func() // takes the counters off the device

	refusals refusals // of queue pair 1, for the goroutine

	mu          sync.Mutex
	machine     *protocol.Machine
	parties     map[uint32]party // who is told about a connection or request
	listeners   map[mad.ServiceID]*listener
	unconfirmed map[verbs.QP]uint32 // connections that are being accepted
	freePort    uint16              // of the listeners at any port, the last that was tried, from the first of them
	freeStep    uint16              // to the next; 0: none was tried
	sleepTill   protocol.Time       // when the goroutine wakes at the latest, 0 for never
	wake        context.CancelFunc
	foreign     uint64 // datagrams that are not from a queue pair 1
	unsent      uint64 // datagrams that could not be sent
	closed      bool
}

// party hears what happens to a connection or a request. The manager's lock is
// held, so it must not call back.
type party interface {
	hear(*protocol.Event)
	lost() // the manager was closed
}

// New makes the manager of a device, which must have no queue pair of type GSI
// yet.
func New(dev verbs.Device, o Options) (*Manager, error) {
	if err := verbs.CheckDevice(dev); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	if err := o.check(); err != nil {
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
		dev: dev, options: o, port: port, limits: limits, opened: time.Now(), done: make(chan struct{}),
		addr: netip.AddrPortFrom(gid.GID.Addr(), port.UDPPort),
		machine: protocol.New(protocol.Config{
			Rand: o.Rand, GUID: limits.NodeGUID, GID: gid.GID, UDPPort: udpPort, MaxMTU: uint8(port.ActiveMTU),
			MaxConns: o.MaxConns, ServiceTimeout: o.ServiceTimeout,
		}),
		parties: make(map[uint32]party), listeners: make(map[mad.ServiceID]*listener), unconfirmed: make(map[verbs.QP]uint32),
		wake: func() {},
	}
	if m.gsi, err = openGSI(dev, o.Receives, o.Rand()&0xffffff); err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	m.watchRefusals()
	m.hide = m.show()
	go m.run()
	return m, nil
}

// rocePort is where adapters listen unless told otherwise.
const rocePort = 4791

// Addr is the address of the device and the UDP port of its adapter.
func (m *Manager) Addr() netip.AddrPort { return m.orClosed().addr }

// now is the time on the manager's clock, never 0.
func (m *Manager) now() protocol.Time { return protocol.Time(time.Since(m.opened)) + 1 }

// run receives datagrams and keeps the time until the manager is closed.
func (m *Manager) run() {
	defer close(m.done)
	for {
		ctx, cancel := m.sleep()
		wcs, err := m.gsi.wait(ctx)
		timeout := ctx.Err() != nil
		cancel()
		if err != nil && !timeout || m.work(wcs) != nil {
			m.shut()
			return
		}
	}
}

// sleep makes a context that ends when there is something to do.
func (m *Manager) sleep() (ctx context.Context, cancel context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	till := m.machine.Deadline()
	if till == 0 {
		ctx, cancel = context.WithCancel(context.Background())
	} else {
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(till-m.now()))
	}
	m.sleepTill, m.wake = till, cancel
	if m.refusals.wakeWith(cancel) || m.closed {
		cancel()
	}
	return ctx, cancel
}

// work handles datagrams and what is due.
func (m *Manager) work(wcs []verbs.WC) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	now := m.now()
	for i := range wcs {
		from, b, ok := m.gsi.datagram(&wcs[i])
		if !ok {
			m.foreign++
			continue
		}
		m.machine.Handle(now, from, b)
		m.settle()
	}
	for _, r := range m.refusals.take() {
		m.machine.Refused(now, r.Peer, r)
	}
	m.machine.Advance(now)
	m.settle()
	if len(wcs) == 0 {
		return nil
	}
	return m.gsi.repost(wcs)
}

// settle tells what happened, sends what is to be sent, and wakes the
// goroutine if it would be late. The lock is held.
func (m *Manager) settle() {
	for e, ok := m.machine.NextEvent(); ok; e, ok = m.machine.NextEvent() {
		m.tell(e)
	}
	for d, ok := m.machine.NextDatagram(); ok; d, ok = m.machine.NextDatagram() {
		if err := m.gsi.send(d.To, &d.MAD); err != nil {
			m.unsent++ // it will be repeated, or the peer repeats its question
		}
	}
	if t := m.machine.Deadline(); t != 0 && (m.sleepTill == 0 || t < m.sleepTill) {
		m.wake()
	}
}

// tell passes an event on.
func (m *Manager) tell(e *protocol.Event) {
	switch e.Kind {
	case protocol.EventRequest:
		m.offer(e, e.REQ.ServiceID)
		return
	case protocol.EventSIDRRequest:
		m.offer(e, e.SIDRReq.ServiceID)
		return
	}
	p := m.parties[e.ID]
	switch e.Kind {
	case protocol.EventReply, protocol.EventEstablished:
	default:
		delete(m.parties, e.ID)
	}
	if p != nil {
		p.hear(e)
	}
}

// Close ends the manager: listeners are closed, requests under way are
// rejected, peers of connections get a DREQ, whose answer is not waited for.
// Closing twice is safe.
func (m *Manager) Close() (err error) {
	m = m.orClosed()
	m.closing.Do(func() {
		m.hide()
		m.mu.Lock()
		if !m.closed {
			m.machine.Close(m.now())
			m.settle()
			m.closed = true
			m.wake()
		}
		m.mu.Unlock()
		<-m.done
		err = m.gsi.close()
	})
	return err
}

// shut tells everyone that it is over. It runs once, at the end of the
// goroutine.
func (m *Manager) shut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for id, p := range m.parties {
		delete(m.parties, id)
		p.lost()
	}
	for id, l := range m.listeners {
		delete(m.listeners, id)
		l.end()
	}
}

// errOf makes a context's end, a refusal or a failure the error of a call.
func errOf(op string, peer netip.AddrPort, err error, detail string) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Peer: peer, Err: err, Detail: detail}
}
