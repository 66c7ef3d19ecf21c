package oob

import (
	"context"
	"net"
	"net/netip"
)

// Resolve finds the address of a host by name, IPv4 before IPv6.
func Resolve(ctx context.Context, host string) (netip.Addr, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, &PeerError{Peer: host, Doing: "look up its address", Err: err}
	}
	for _, a := range addrs {
		if a.Unmap().Is4() {
			return a.Unmap(), nil
		}
	}
	return addrs[0], nil
}

// LocalIPTo is our address on the way to a peer. It is not valid if the peer is
// on this machine: then any two addresses of the loopback interface do.
func LocalIPTo(peer netip.Addr) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, 9))) // nothing is sent
	if err != nil {
		return netip.Addr{}, &PeerError{Peer: peer.String(), Doing: "find the way there", Err: err}
	}
	defer conn.Close()
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	if local == peer.Unmap() || local.IsLoopback() {
		return netip.Addr{}, nil
	}
	return local, nil
}
