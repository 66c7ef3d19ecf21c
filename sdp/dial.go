package sdp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/internal/hostaddr"
)

// A Dialer contains options for dialing, as [net.Dialer] does. Stack is required.
type Dialer struct {
	Stack       *Stack
	FlowControl *FlowControl // overrides the stack's
	UDPPort     uint16       // of the peer's adapter; default 4791

	// These fields have the meaning of [net.Dialer].
	LocalAddr       net.Addr            // local port: an Addr or *net.TCPAddr with the device's address or none
	Timeout         time.Duration       // maximum duration of the dial
	Deadline        time.Time           // absolute limit of the dial
	KeepAlive       time.Duration       // overrides Options.KeepAlive; negative disables, 0 means the stack's
	KeepAliveConfig net.KeepAliveConfig // overrides KeepAlive if enabled
}

// Dial connects to a listener at an address like "192.0.2.1:7471": the IP address of the peer's
// adapter and an SDP port, as a number or a service name. The network is "sdp" or one of TCP's.
//
// If the system refuses to send, or the peer's host returns an ICMP error because the port is
// closed, Dial fails within 50 ms with the system's error, for example syscall.ECONNREFUSED or
// ENETUNREACH.
//
// Without a reply Dial sends the request 16 times and fails with syscall.ETIMEDOUT after about
// 10 s. If the peer's adapter replies but its application does not accept, it fails after 26 s.
// Use DialContext for a shorter time, or a manager with other [cm.Options] for fewer
// retransmissions.
func (s *Stack) Dial(network, address string) (net.Conn, error) {
	return s.DialContext(context.Background(), network, address)
}

// DialContext is like Dial with a context that applies until the connection is established. It
// has the signature of http.Transport.DialContext. If ctx is done first, the error contains the
// context's error and whether the adapter or the application did not reply. A nil ctx is never
// done.
func (s *Stack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&Dialer{Stack: s}).DialContext(ctx, network, address)
}

// Dial is [Stack.Dial] with the options of d.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext is [Stack.DialContext] with the options of d. If the peer does not support the
// requested flow control mode, the connection uses Credit. The connection is a *[Conn].
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d == nil {
		d = &Dialer{}
	}
	if d.Stack.isClosed() {
		return nil, openError("dial", network, netip.AddrPort{}, d.Stack.closedError())
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := d.withTimeouts(ctx)
	defer cancel()
	to, err := resolveDialAddr(ctx, d.Stack.ownAddr(), network, address)
	if err != nil {
		return nil, openError("dial", network, to, err)
	}
	c, err := d.Stack.dialAddr(ctx, to, *d)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// resolveDialAddr parses an address to dial. It ignores the zone of a link-local address: packets
// leave by the interface that has the adapter's address.
func resolveDialAddr(ctx context.Context, own netip.Addr, network, address string) (netip.AddrPort, error) {
	host, port, err := splitHostPort(ctx, "tcp", network, address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" {
		return netip.AddrPort{}, &net.AddrError{Err: "missing host; give the peer's adapter, for example 192.0.2.1" + address + "; Listener.Addr has it", Addr: address}
	}
	ips, err := lookupHost(ctx, own, network, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(ips[0], port), nil
}

// checkLocalAddr returns an error if LocalAddr belongs to another network.
func (d *Dialer) checkLocalAddr() error {
	switch d.LocalAddr.(type) {
	case nil, Addr, *net.TCPAddr:
		return nil
	}
	return &net.AddrError{Err: "mismatched local address type", Addr: d.LocalAddr.String()}
}

// boundPort returns the port of LocalAddr for a device with address own, or 0 for any port.
func (d *Dialer) boundPort(own netip.Addr) (uint16, error) {
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
		return 0, fmt.Errorf("%w: device address is %v, not %v", errAddrNotAvailable, own, ip)
	}
	return at.Port(), nil
}

// withTimeouts returns ctx with the dialer's Timeout and Deadline.
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

// keepAliveSetting returns the keepalive setting of a connection. period is that of the stack.
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

func (s *Stack) dialAddr(ctx context.Context, to netip.AddrPort, d Dialer) (*Conn, error) {
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
		if cfg = cfg.WithControl(flow.Control(*d.FlowControl)); cfg.Validate() != nil {
			return nil, cfg.Validate()
		}
	}
	port, err := d.boundPort(s.ownAddr())
	if err != nil {
		return nil, err
	}
	if c, err = s.newConn(&cfg); err != nil {
		return nil, err
	}
	to = hostaddr.CanonicalPort(to)
	c.keepAlive = d.keepAliveSetting(s.options.KeepAlive)
	local := netip.AddrPortFrom(s.ownAddr(), cmp.Or(port, s.nextEphemeralPort()))
	adapter := netip.AddrPortFrom(to.Addr(), cmp.Or(d.UDPPort, defaultUDPPort))
	if err := ctx.Err(); err != nil {
		c.freeResources()
		return nil, s.mapClosed(unsentError(err, adapter))
	}
	began := time.Now()
	conn, err := s.cm.Dial(ctx, to, c.qp, cm.DialOptions{
		ConnectOptions: connectOptions(c.keepAlive),
		Prepare:        c.postInitialReceives, UDPPort: d.UDPPort, PortSpace: cm.SDP, LocalPort: local.Port(),
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

// mapClosed returns errClosedStack if the stack has been closed, and err otherwise.
func (s *Stack) mapClosed(err error) error {
	if s.ctx.Err() != nil {
		return errClosedStack
	}
	return err
}

// nextEphemeralPort returns the next local port of a dialed connection.
func (s *Stack) nextEphemeralPort() uint16 { return uint16(49152 + s.ports.Add(1)%16384) }
