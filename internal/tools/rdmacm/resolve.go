package rdmacm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// Resolve returns the address of a host, which is a name unless the format says
// that it is an address. Of several it is the first by IPv4, or else by IPv6.
func Resolve(ctx context.Context, host string, f Format) (netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.Zone() != "":
		return netip.Addr{}, fmt.Errorf("%s: an adapter has no link-local address with a zone; give another address of that machine", host)
	case err == nil && f == IPv6 && !addr.Is6():
		return netip.Addr{}, fmt.Errorf("-f ipv6: %s is no IPv6 address", host)
	case err == nil:
		return addr.Unmap(), nil
	case f == IP || f == IPv6:
		return netip.Addr{}, fmt.Errorf("-f %s: %q is no address", f, host)
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is neither an address nor the name of a host: %w", host, err)
	}
	best := list[0].Unmap()
	for _, a := range list {
		if a = a.Unmap(); a.Is4() {
			best = a
			break
		}
	}
	return best, nil
}

// ResolveOwn is Resolve for an address to bind to, where "" is the zero Addr.
func ResolveOwn(ctx context.Context, host string, f Format) (netip.Addr, error) {
	if host == "" {
		return netip.Addr{}, nil
	}
	return Resolve(ctx, host, f)
}

// route is our address on the way to another. Nothing is sent.
func route(to netip.Addr) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, RoCEPort)))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("no way to %v: %w", to, err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// ownAddrs are the addresses of this machine at which a server is reached. Of
// the loopback interface it is one of each family.
func ownAddrs() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range list {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if ip, ok := netip.AddrFromSlice(n.IP); ok && !ip.IsLinkLocalUnicast() {
			own = append(own, ip.Unmap())
		}
	}
	return own, nil
}
