package rdmacm

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/softrnic/softrnic/internal/link"
)

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
