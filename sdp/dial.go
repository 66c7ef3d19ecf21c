package sdp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// Dialer says how to dial. The zero value does as the stack's options say.
type Dialer struct {
	FlowControl *FlowControl // instead of the stack's
	UDPPort     uint16       // of the peer's adapter, if it is not 4791

	// These are as in [net.Dialer].
	LocalAddr       net.Addr            // our port: an Addr or a *net.TCPAddr, whose address is the device's or none
	Timeout         time.Duration       // how long the dial may take
	Deadline        time.Time           // until when
	KeepAlive       time.Duration       // instead of Options.KeepAlive; negative means never, 0 as the stack has it
	KeepAliveConfig net.KeepAliveConfig // instead of KeepAlive, if it is enabled
}

// checkLocalAddr refuses addresses of other networks.
func (d *Dialer) checkLocalAddr() error {
	switch d.LocalAddr.(type) {
	case nil, Addr, *net.TCPAddr:
		return nil
	}
	return &net.AddrError{Err: "mismatched local address type", Addr: d.LocalAddr.String()}
}

// localPort is the port that LocalAddr says for a device at own, 0 for any.
func (d *Dialer) localPort(own netip.Addr) (uint16, error) {
	var at netip.AddrPort
	switch a := d.LocalAddr.(type) {
	case Addr:
		at = a.AddrPort
	case *net.TCPAddr:
		if a == nil {
			return 0, nil
		}
		at = a.AddrPort()
	}
	if ip := at.Addr().Unmap(); ip.IsValid() && !ip.IsUnspecified() && ip != own {
		return 0, fmt.Errorf("%w: the device has address %v, not %v", errAddrNotAvailable, own, ip)
	}
	return at.Port(), nil
}

// withTimeouts is ctx with the dialer's Timeout and Deadline.
func (d *Dialer) withTimeouts(ctx context.Context) (context.Context, context.CancelFunc) {
	until := d.Deadline
	if d.Timeout != 0 {
		if t := time.Now().Add(d.Timeout); until.IsZero() || t.Before(until) {
			until = t
		}
	}
	if until.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, until)
}

// keepAliveSetting is the setting of the keepalive of a connection on a stack with this period.
func (d *Dialer) keepAliveSetting(period time.Duration) keepAlive {
	k := newKeepAlive(cmp.Or(d.KeepAlive, period))
	if c := d.KeepAliveConfig; c.Enable {
		k = newKeepAlive(period)
		if k.enabled = true; c.Idle > 0 {
			k.period = c.Idle
		}
	}
	return k
}

// Dial connects to a listener at an address like "192.0.2.1:7471": the peer's
// adapter and a port of SDP, a number or the name of a service. The network is "sdp";
// that of TCP will do.
//
// What the system does not send, or a host returns because the port is closed, fails within
// 50 ms with the system's error, for example syscall.ECONNREFUSED or ENETUNREACH.
//
// Where nobody answers it asks 16 times, and fails with syscall.ETIMEDOUT after about
// 10 s. Where an adapter answers, and the program behind it does not accept, that is after
// 26 s. DialContext gives up sooner; a manager of your own with other [cm.Options]
// asks less often.
func (s *Stack) Dial(network, address string) (net.Conn, error) {
	return s.DialContext(context.Background(), network, address)
}

// DialContext is Dial with a context, which counts until the connection is there:
// what http.Transport wants. One that ends first is in the error, which says who had
// not answered until then: the adapter, or the program behind it. A nil context never ends.
func (s *Stack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if s.isClosed() {
		return nil, openError("dial", network, netip.AddrPort{}, errClosedStack)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	to, err := s.resolveDialAddr(ctx, network, address)
	if err != nil {
		return nil, openError("dial", network, to, err)
	}
	c, err := s.DialAddr(ctx, to, Dialer{})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// DialAddr connects to a listener. If the peer's SDP knows nothing of the flow
// control asked for, the connection has that of the standard.
func (s *Stack) DialAddr(ctx context.Context, to netip.AddrPort, d Dialer) (*Conn, error) {
	if err := d.checkLocalAddr(); err != nil {
		return nil, openError("dial", network, netip.AddrPort{}, err)
	}
	c, err := s.dial(ctx, to, d)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Source: d.LocalAddr, Addr: Addr{to}, Err: err}
	}
	return c, nil
}

func (s *Stack) dial(ctx context.Context, to netip.AddrPort, d Dialer) (c *Conn, err error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.inUse.Done()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := d.withTimeouts(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	cfg := s.options.protocolConfig()
	if d.FlowControl != nil {
		if cfg = cfg.WithControl(*d.FlowControl); cfg.Validate() != nil {
			return nil, cfg.Validate()
		}
	}
	port, err := d.localPort(s.cm.Addr().Addr())
	if err != nil {
		return nil, err
	}
	if c, err = s.newConn(&cfg); err != nil {
		return nil, err
	}
	to = wire.CanonicalAddrPort(to)
	c.keepAlive = d.keepAliveSetting(s.options.KeepAlive)
	local := netip.AddrPortFrom(s.cm.Addr().Addr(), cmp.Or(port, s.nextEphemeralPort()))
	adapter := netip.AddrPortFrom(to.Addr(), cmp.Or(d.UDPPort, defaultUDPPort))
	if err := ctx.Err(); err != nil {
		c.freeResources()
		return nil, s.mapClosed(notAskedError(err, adapter))
	}
	began := time.Now()
	conn, err := s.cm.Dial(ctx, to, cm.DialOptions{
		ConnectOptions: connectOptions(c.keepAlive),
		QP:             c.qp, Prepare: c.postInitialReceives, UDPPort: d.UDPPort, PortSpace: cm.SDP, LocalPort: local.Port(),
		PrivateData: cfg.Hello(local, to.Addr()).Append(nil),
	})
	if err != nil {
		c.freeResources()
		return nil, s.mapClosed(dialError(err, adapter, time.Since(began)))
	}
	c.setEstablished(conn)
	ack, err := bsdh.ParseHelloAck(conn.PrivateData())
	if err != nil {
		c.abort()
		return nil, err
	}
	peer, err := cfg.PeerFromHelloAck(&ack)
	if err != nil {
		c.abort()
		return nil, err
	}
	c.startCore(peer)
	return c, nil
}

// mapClosed is err, unless it came of the end of the stack.
func (s *Stack) mapClosed(err error) error {
	if s.ctx.Err() != nil {
		return errClosedStack
	}
	return err
}

// shortKeepAlive is the period of the keepalive below which a connection wants to know soon that its peer has gone.
const shortKeepAlive = 10 * time.Second

// connectOptions returns the options of a connection with this keepalive. A receiver
// that is out of receives is asked again soon, and for ever: it may be computing. A peer whose process gets
// no processor on a busy machine has 7.2 s until it is taken for gone, or 1.8 s if the
// period of the keepalive is short (docs/reliability.md).
func connectOptions(k keepAlive) verbs.ConnectOptions {
	o := verbs.ConnectOptions{Timeout: 16, RNRRetry: 7, MinRNRTimer: 1, MaxRdAtomic: 4, MaxDestRdAtomic: 4}
	if k.enabled && k.period < shortKeepAlive {
		o.Timeout = 14
	}
	return o
}

// startCore makes the connection work.
func (c *Conn) startCore(p protocol.Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flowControl = p.FlowControl
	c.core.Start(p)
	c.postPending()
	c.applyKeepAlive()
	c.cmConn.AfterDone(c.handleDisconnected)
	c.exitCall()
}

// handleDisconnected is what happens when the peer, or its host, has ended the
// connection.
func (c *Conn) handleDisconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tornDown {
		return
	}
	if c.polling {
		// Its receives are flushed. If there is none this one will be.
		_, _ = c.qp.PostRecv([]verbs.RecvWR{{}})
		return
	}
	c.pollCompletions() // what came before
	c.core.PeerDisconnected(c.cmConn.Err())
	c.wakeWaiters()
	c.teardownIfDone()
}

// nextEphemeralPort is a port of ours, for the peer to see.
func (s *Stack) nextEphemeralPort() uint16 { return uint16(49152 + s.ports.Add(1)%16384) }
