package sdp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// Listener takes connections: a net.Listener.
type Listener struct {
	stack *Stack
	inner *cm.Listener
	addr  Addr

	ctx          context.Context
	cancel       context.CancelFunc
	done         chan struct{} // closed when no more connections come
	backlogSlots chan struct{} // the backlog: an element for each connection in it, from its handshake on
	ready        chan *Conn    // those that are established, which Accept has not taken
	accepts      sync.WaitGroup
	refused      atomic.Uint64

	mu       sync.Mutex
	deadline *deadline
	closed   bool // by Close
}

var _ net.Listener = (*Listener)(nil)

// Listen takes connections at an address like ":7471" or "192.0.2.1:7471", whose
// address is the device's if it is given. Port 0 is a free one. The network is
// "sdp"; that of TCP will do.
func (s *Stack) Listen(network, address string) (net.Listener, error) {
	if s.isClosed() {
		return nil, openError("listen", network, netip.AddrPort{}, errClosedStack)
	}
	at, err := s.listenAddr(network, address)
	if err != nil {
		return nil, openError("listen", network, at, err)
	}
	l, err := s.ListenPort(at.Port(), 0)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// DefaultBacklog is how many connections may wait for Accept.
const DefaultBacklog = 128

// maxBacklog is the most that a program gets of what it asks for, as of listen(2).
const maxBacklog = 1 << 16

// ListenPort is Listen with a backlog: how many connections may wait for Accept,
// those whose handshake is under way included. Others wait longer for an
// answer, and are refused by nobody but their patience. 0 or less means
// DefaultBacklog, and more than 65536 that.
func (s *Stack) ListenPort(port uint16, backlog int) (*Listener, error) {
	l, err := s.listen(port, backlog)
	if err != nil {
		return nil, s.listenError(port, err)
	}
	return l, nil
}

func (s *Stack) listen(port uint16, backlog int) (*Listener, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.inUse.Done()
	inner, err := s.cm.Listen(port, cm.ListenOptions{PortSpace: cm.SDP, NoUC: true})
	if err != nil {
		return nil, err
	}
	if backlog <= 0 {
		backlog = DefaultBacklog
	}
	backlog = min(backlog, maxBacklog)
	l := &Listener{
		stack: s, inner: inner, addr: Addr{inner.Addr()}, done: make(chan struct{}),
		backlogSlots: make(chan struct{}, backlog), ready: make(chan *Conn, backlog), deadline: newDeadline(),
	}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	s.goroutines.Go(l.acceptLoop)
	return l, nil
}

// acceptLoop answers requests, when there is a place for one more.
func (l *Listener) acceptLoop() {
	defer close(l.done)
	defer l.inner.Close() // which Close has done, unless the stack has ended
	defer l.accepts.Wait()
	for {
		select {
		case l.backlogSlots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		r, err := l.inner.Accept(l.ctx)
		if err != nil {
			return
		}
		l.accepts.Go(func() { l.acceptRequest(r) })
	}
}

// acceptRequest accepts a request and queues the connection, which has a place.
func (l *Listener) acceptRequest(r *cm.Request) {
	c, err := l.stack.acceptConn(l.ctx, r)
	if err != nil {
		l.refused.Add(1)
		<-l.backlogSlots
		return
	}
	l.ready <- c
}

// Refused is how many requests did not become a connection: those of peers that
// do not keep to the protocol, or went away.
func (l *Listener) Refused() uint64 {
	if !l.isOpen() {
		return 0
	}
	return l.refused.Load()
}

// acceptTime bounds an answer to a peer that has gone silent.
const acceptTime = 10 * time.Second

// negotiate reads a peer's Hello: what it is, and what our end is to be.
func (s *Stack) negotiate(r *cm.Request) (cfg protocol.Config, peer protocol.Peer, err error) {
	hello, err := bsdh.ParseHello(r.PrivateData())
	if err != nil {
		return cfg, peer, err
	}
	cfg = s.options.protocolConfig()
	if cfg, err = cfg.Negotiate(&hello); err != nil {
		return cfg, peer, err
	}
	peer, err = protocol.PeerFromHello(&hello)
	return cfg, peer, err
}

// acceptConn answers a request, and rejects what cannot be a connection.
func (s *Stack) acceptConn(ctx context.Context, r *cm.Request) (*Conn, error) {
	if err := s.acquire(); err != nil {
		return nil, errors.Join(err, r.RejectWith(cm.ConsumerReject, nil))
	}
	defer s.inUse.Done()
	cfg, peer, err := s.negotiate(r)
	if err != nil {
		return nil, errors.Join(err, r.RejectWith(cm.ConsumerReject, nil))
	}
	c, err := s.newConn(&cfg)
	if err != nil {
		return nil, errors.Join(err, r.RejectWith(cm.NoResources, nil))
	}
	ctx, cancel := context.WithTimeout(ctx, s.acceptTime)
	defer cancel()
	conn, err := r.Accept(ctx, c.qp, cm.AcceptOptions{
		ConnectOptions: connectOptions(c.keepAlive), Prepare: func(qp verbs.QP) error { return c.postInitialReceives(qp) },
		PrivateData: cfg.HelloAck().Append(nil),
	})
	if err != nil {
		c.freeResources()
		return nil, err
	}
	c.setEstablished(conn)
	c.startCore(peer)
	return c, nil
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptSDP()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptSDP waits for a connection.
func (l *Listener) AcceptSDP() (*Conn, error) {
	if !l.isOpen() {
		return nil, syscall.EINVAL
	}
	var why error
	l.mu.Lock()
	limit := l.deadline.moment
	l.mu.Unlock()
	switch { // these go before connections that are ready
	case l.ctx.Err() != nil:
		return nil, l.opError("accept", net.ErrClosed)
	case limit.Canceled():
		return nil, l.opError("accept", limit.Err())
	}
	select {
	case c := <-l.ready:
		<-l.backlogSlots
		return c, nil
	case <-limit.Done():
		why = limit.Err()
	case <-l.ctx.Done():
		why = net.ErrClosed
	}
	return nil, l.opError("accept", why)
}

// isOpen reports whether l is a listener: calls on nil return syscall.EINVAL.
func (l *Listener) isOpen() bool { return l != nil && l.stack != nil }

// opError returns err as the *net.OpError of a call on l.
func (l *Listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: l.addr, Err: err}
}

// SetDeadline is how long Accept waits, as (*net.TCPListener).SetDeadline says.
func (l *Listener) SetDeadline(t time.Time) error {
	if !l.isOpen() {
		return syscall.EINVAL
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return net.ErrClosed // bare, as with *net.TCPListener
	}
	l.deadline.set(t)
	return nil
}

// Addr is the address that peers dial: an Addr.
func (l *Listener) Addr() net.Addr {
	if !l.isOpen() {
		return nil
	}
	return l.addr
}

// Close ends the listener. Connections that Accept has not returned are ended,
// others stay. A second Close is net.ErrClosed.
func (l *Listener) Close() error {
	if !l.isOpen() {
		return syscall.EINVAL
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.opError("close", net.ErrClosed)
	}
	l.closed = true
	l.cancel()
	l.deadline.set(time.Time{}) // no timer remains
	l.mu.Unlock()
	err := l.inner.Close()
	<-l.done
	for {
		select {
		case c := <-l.ready:
			c.abort()
		default:
			return err
		}
	}
}
