package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
)

// RoCEPort is the UDP port at which programs expect a server's adapter.
const RoCEPort = 4791

// An Endpoint is an adapter with its connection manager.
type Endpoint struct {
	Device     verbs.Device
	Manager    *cm.Manager
	ownsDevice bool // Close closes Device
}

// OpenClient opens an endpoint with a route to a server. bind is its address; the zero Addr stands
// for the source address of the route. The caller must close it.
func OpenClient(p DeviceSource, server, bind netip.Addr) (*Endpoint, error) {
	if p.Device != nil {
		return p.openEndpoint(netip.AddrPort{}, bind)
	}
	at, err := clientAddr(server, bind)
	if err != nil {
		return nil, err
	}
	return p.openEndpoint(at, netip.Addr{})
}

// OpenServer opens an endpoint at an address of this machine, on UDP port 4791. The zero Addr
// leaves the address to the source. The caller must close it.
func OpenServer(p DeviceSource, own netip.Addr) (*Endpoint, error) {
	at := netip.AddrPort{}
	if own.IsValid() {
		at = netip.AddrPortFrom(own, RoCEPort)
	}
	e, err := p.openEndpoint(at, own)
	if err != nil {
		return nil, err
	}
	if port := e.Manager.Addr().Port(); port != RoCEPort {
		return nil, errors.Join(portError(port), e.Close())
	}
	return e, nil
}

// portError returns the error of a server's adapter on another UDP port than 4791, where clients
// do not find it.
func portError(port uint16) error {
	return fmt.Errorf("device listens on UDP port %d, want %d: RDMA-CM cannot carry the UDP port of a server", port, RoCEPort)
}

// clientAddr returns the address of a client's adapter. The port is 0 on the server's own address,
// because the server learns a client's port, and everywhere on the loopback interface, where port
// 4791 is left to servers.
func clientAddr(server, bind netip.Addr) (netip.AddrPort, error) {
	if server.IsUnspecified() || server.IsMulticast() {
		return netip.AddrPort{}, fmt.Errorf("server address %v: not a unicast address", server)
	}
	own := bind
	if !bind.IsValid() || bind.IsUnspecified() {
		var err error
		if own, err = localAddrTo(server); err != nil {
			return netip.AddrPort{}, err
		}
	}
	if hostaddr.Canonical(own) == hostaddr.Canonical(server) || !bind.IsValid() && own.IsLoopback() {
		return netip.AddrPortFrom(own, 0), nil
	}
	return netip.AddrPortFrom(own, RoCEPort), nil
}

// openEndpoint opens a device at an address, unless the source has an open one, which must be at
// want if that is a specified address.
func (p *DeviceSource) openEndpoint(at netip.AddrPort, want netip.Addr) (_ *Endpoint, err error) {
	e := &Endpoint{Device: p.Device}
	if p.Device == nil {
		if e.Device, err = p.Open(at); err != nil {
			return nil, err
		}
		e.ownsDevice = true
	}
	if e.Manager, err = cm.New(e.Device, cm.Options{}); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if is := e.Addr(); p.Device != nil && want.IsValid() && !want.IsUnspecified() && hostaddr.Canonical(want) != is {
		return nil, errors.Join(fmt.Errorf("device at %v cannot be bound to %v; name one address", is, want), e.Close())
	}
	return e, nil
}

// Addr returns the adapter's address.
func (e *Endpoint) Addr() netip.Addr { return e.Manager.Addr().Addr() }

// Close closes the manager, and the device if the endpoint has opened it.
func (e *Endpoint) Close() (err error) {
	if e.Manager != nil {
		err = e.Manager.Close()
	}
	if e.ownsDevice {
		err = errors.Join(err, e.Device.Close())
	}
	return err
}

// A DeviceSource provides the device of a tool: an open one, or a function that opens one.
type DeviceSource struct {
	// Device is an open device; the tool does not close it. If it is nil, Open is called
	// for one at an address of this machine: port 0 means any port, and the
	// zero AddrPort any free address of the loopback interface.
	Device verbs.Device
	Open   func(at netip.AddrPort) (verbs.Device, error)
}

// Check returns an error if the source has neither a device nor a function.
func (p *DeviceSource) Check() error {
	if p.Device == nil && p.Open == nil {
		return option.Errorf("device", "none given")
	}
	return nil
}

// Resolve returns the address of a host, which is a name or an address as the format allows. It
// prefers the first IPv4 address. A link-local address keeps its zone, which routing needs.
func Resolve(ctx context.Context, host string, f Format) (netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && f == FormatIPv6 && !addr.Is6():
		return netip.Addr{}, fmt.Errorf("-f ipv6: %s is not an IPv6 address", host)
	case err == nil:
		return link.NormalizeBind(addr), nil
	case f == FormatIP || f == FormatIPv6:
		return netip.Addr{}, fmt.Errorf("-f %s: %q is not an address", f, host)
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is neither an address nor a host name: %w", host, err)
	}
	best := link.NormalizeBind(list[0])
	for _, a := range list {
		if a = link.NormalizeBind(a); a.Is4() {
			best = a
			break
		}
	}
	return best, nil
}

// ResolveBind is Resolve for a local address; "" stands for the zero Addr.
func ResolveBind(ctx context.Context, host string, f Format) (netip.Addr, error) {
	if host == "" {
		return netip.Addr{}, nil
	}
	return Resolve(ctx, host, f)
}

// localAddrTo returns the source address of the route to another address. It sends no packet.
func localAddrTo(to netip.Addr) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, RoCEPort)))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("no route to %v: %w", to, err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// localAddrs returns the addresses of this machine at which a server is reachable, with the zones
// of link-local ones.
func localAddrs() ([]netip.Addr, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, i := range interfaces {
		list, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			p, err := netip.ParsePrefix(a.String())
			if err == nil {
				own = append(own, link.NormalizeBind(p.Addr().WithZone(i.Name)))
			}
		}
	}
	return own, nil
}
