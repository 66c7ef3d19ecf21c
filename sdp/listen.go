package sdp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A Listener accepts SDP connections. It implements net.Listener.
type Listener struct {
	stack *Stack
	inner *cm.Listener
	addr  Addr

	ctx          context.Context
	cancel       context.CancelFunc
	done         chan struct{} // closed when no more connections are accepted
	acceptErr    error         // the reason; set before done is closed
	backlogSlots chan struct{} // backlog: one element per connection from its handshake until Accept
	ready        chan *Conn    // established connections, not yet returned by Accept
	accepts      sync.WaitGroup
	refused      atomic.Uint64

	mu       sync.Mutex
	deadline *deadline
	closed   bool // by Close
}

var _ net.Listener = (*Listener)(nil)

// A ListenConfig contains options for listening, as [net.ListenConfig] does. Stack is required.
type ListenConfig struct {
	Stack *Stack

	// Backlog is the maximum number of connections that wait for Accept, including those in their
	// handshake, up to 65536. Later requests wait for a reply until their dialers time out. The
	// default is DefaultBacklog.
	Backlog int
}

// Listen listens at an address like ":7471" or "192.0.2.1:7471". The IP address, if given, must
// be the device's. Port 0 selects a free one. The network is "sdp" or one of TCP's. The listener
// is a *[Listener].
func (s *Stack) Listen(network, address string) (net.Listener, error) {
	return (&ListenConfig{Stack: s}).Listen(context.Background(), network, address)
}

// Listen is [Stack.Listen] with the options of lc. ctx applies to the lookup of a host name. A nil
// ctx is never done.
func (lc *ListenConfig) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if lc == nil {
		lc = &ListenConfig{}
	}
	if lc.Stack.isClosed() {
		return nil, openError("listen", network, netip.AddrPort{}, lc.Stack.closedError())
	}
	at, err := resolveListenAddr(ctx, lc.Stack.ownAddr(), "tcp", network, address)
	if err != nil {
		return nil, openError("listen", network, at, err)
	}
	l, err := lc.Stack.listenPort(at.Port(), lc.Backlog)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// DefaultBacklog is the default number of connections that may wait for Accept.
const DefaultBacklog = 128

// maxBacklog is the maximum backlog, as with listen(2).
const maxBacklog = 1 << 16

// listenPort listens on a port with a backlog, 0 for the default.
func (s *Stack) listenPort(port uint16, backlog int) (*Listener, error) {
	l, err := s.listen(port, backlog)
	if err != nil {
		return nil, listenError(netip.AddrPortFrom(s.ownAddr(), port), err)
	}
	return l, nil
}

func (s *Stack) listen(port uint16, backlog int) (*Listener, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.inUse.Done()
	if backlog < 0 || backlog > maxBacklog {
		return nil, fmt.Errorf("%w: ListenConfig.Backlog: %d out of range [0, %d]", verbs.ErrInvalid, backlog, maxBacklog)
	}
	inner, err := s.cm.Listen(port, cm.ListenOptions{PortSpace: cm.SDP, NoUC: true})
	if err != nil {
		return nil, err
	}
	backlog = cmp.Or(backlog, DefaultBacklog)
	l := &Listener{
		stack: s, inner: inner, addr: Addr{inner.Addr()}, done: make(chan struct{}),
		backlogSlots: make(chan struct{}, backlog), ready: make(chan *Conn, backlog), deadline: newDeadline(),
	}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	s.goroutines.Go(l.acceptLoop)
	return l, nil
}

// acceptLoop accepts requests while the backlog has a free slot.
func (l *Listener) acceptLoop() {
	defer close(l.done)
	defer l.inner.Close() // a no-op after Close; needed if the stack is closed
	defer l.accepts.Wait()
	for {
		select {
		case l.backlogSlots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		r, err := l.inner.Accept(l.ctx)
		if err != nil {
			l.acceptErr = err
			return
		}
		l.accepts.Go(func() { l.acceptRequest(r) })
	}
}

// acceptRequest accepts a request and queues the connection, or releases its backlog slot.
func (l *Listener) acceptRequest(r *cm.Request) {
	c, err := l.stack.acceptConn(l.ctx, r)
	if err != nil {
		l.refused.Add(1)
		<-l.backlogSlots
		return
	}
	l.ready <- c
}

// Refused returns the number of requests that did not become a connection, because the peer
// violated the protocol or disappeared.
func (l *Listener) Refused() uint64 {
	if !l.isOpen() {
		return 0
	}
	return l.refused.Load()
}

// negotiate parses a peer's Hello and returns the local configuration and the peer's parameters.
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

// acceptConn accepts a request, or rejects it if negotiation or allocation fails.
func (s *Stack) acceptConn(ctx context.Context, r *cm.Request) (*Conn, error) {
	if err := s.acquire(); err != nil {
		return nil, errors.Join(err, r.Reject(cm.ConsumerReject, nil))
	}
	defer s.inUse.Done()
	cfg, peer, err := s.negotiate(r)
	if err != nil {
		return nil, errors.Join(err, r.Reject(cm.ConsumerReject, nil))
	}
	c, err := s.newConn(&cfg)
	if err != nil {
		return nil, errors.Join(err, r.Reject(cm.NoResources, nil))
	}
	ctx, cancel := context.WithTimeout(ctx, s.acceptTime)
	defer cancel()
	conn, err := r.Accept(ctx, c.qp, cm.AcceptOptions{
		ConnectOptions: connectOptions(c.keepAlive), Prepare: c.postInitialReceives,
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

// AcceptSDP is like Accept but returns a *Conn.
func (l *Listener) AcceptSDP() (*Conn, error) {
	if !l.isOpen() {
		return nil, syscall.EINVAL
	}
	var err error
	l.mu.Lock()
	limit := l.deadline.ctx
	l.mu.Unlock()
	switch { // these have priority over ready connections
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
		err = limit.Err()
	case <-l.ctx.Done():
		err = net.ErrClosed
	case <-l.done: // the device has failed, unless Close is the reason
		if err = l.acceptErr; l.ctx.Err() != nil {
			err = net.ErrClosed
		}
	}
	return nil, l.opError("accept", err)
}

// isOpen reports whether Listen created l. Calls on a nil Listener return syscall.EINVAL.
func (l *Listener) isOpen() bool { return l != nil && l.stack != nil }

// opError wraps err in a *net.OpError with l's address.
func (l *Listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: l.addr, Err: err}
}

// SetDeadline sets the deadline of Accept, as (*net.TCPListener).SetDeadline does.
func (l *Listener) SetDeadline(t time.Time) error {
	if !l.isOpen() {
		return syscall.EINVAL
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return net.ErrClosed // unwrapped, as with *net.TCPListener
	}
	l.deadline.set(t)
	return nil
}

// Addr returns the listener's Addr.
func (l *Listener) Addr() net.Addr {
	if !l.isOpen() {
		return nil
	}
	return l.addr
}

// Close closes the listener and resets connections that Accept has not returned. Other
// connections remain. A second Close returns net.ErrClosed.
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
	l.deadline.set(time.Time{}) // stops the timer
	l.mu.Unlock()
	l.stack.mu.Lock()
	delete(l.stack.listeners, l)
	l.stack.mu.Unlock()
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
