package hostaddr

import (
	"net"
	"net/netip"
	"slices"
)

// Own returns the unicast addresses of this host's interfaces that are up, in the
// system's order. IPv6 link-local addresses carry their interface as zone.
func Own() ([]netip.Addr, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list []netip.Addr
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			ip := p.Addr().Unmap()
			if ip.Is6() && ip.IsLinkLocalUnicast() {
				ip = ip.WithZone(i.Name)
			}
			list = append(list, ip)
		}
	}
	return list, nil
}

// IsOwn reports whether ip is an address of this host: of an interface that is up, or
// one of the loopback network that a socket can be bound to, such as 127.0.0.2 on
// Linux.
func IsOwn(ip netip.Addr) bool {
	ip = ip.Unmap()
	if ip.IsLoopback() {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	own, err := Own()
	return err == nil && slices.Contains(own, ip)
}

// Toward returns the source address of this host's route to peer. It connects a UDP socket and
// sends nothing. Without a route it returns the error of the system.
func Toward(peer netip.Addr) (netip.Addr, error) {
	const discard = 9 // any port, nothing is sent
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, discard)))
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}
