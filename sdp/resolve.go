package sdp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

// checkNetwork accepts "sdp" and the names of the networks of proto, "tcp" or "udp", which
// programs written for that protocol pass on.
func checkNetwork(proto, name string) error {
	switch name {
	case network, proto, proto + "4", proto + "6":
		return nil
	}
	return net.UnknownNetworkError(name)
}

// resolveDialAddr parses an address to dial. It ignores the zone of a link-local address: packets
// leave by the interface that has the adapter's address.
func (s *Stack) resolveDialAddr(ctx context.Context, network, address string) (netip.AddrPort, error) {
	host, port, err := splitHostPort(ctx, "tcp", network, address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" {
		return netip.AddrPort{}, &net.AddrError{Err: "missing host; give the peer's adapter, for example 192.0.2.1" + address + "; Listener.Addr has it", Addr: address}
	}
	ips, err := s.lookupHost(ctx, network, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(ips[0], port), nil
}

// listenAddr parses an address to listen at. Its host may be omitted and must otherwise be the
// adapter's. It returns the adapter's address, or with syscall.EADDRNOTAVAIL the foreign one.
// proto is "tcp" or "udp" and determines the names of networks and services. A nil ctx is never
// done.
func (s *Stack) listenAddr(ctx context.Context, proto, network, address string) (netip.AddrPort, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	own := s.cm.Addr().Addr()
	host, port, err := splitHostPort(ctx, proto, network, address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" {
		return netip.AddrPortFrom(own, port), nil
	}
	ips, err := s.lookupHost(ctx, network, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if !ips[0].IsUnspecified() && !slices.Contains(ips, own) {
		return netip.AddrPortFrom(ips[0], port), fmt.Errorf("%w: device address is %v, not %v; open a device there (SOFTRNIC_ADDR) or omit the host", errAddrNotAvailable, own, ips[0])
	}
	return netip.AddrPortFrom(own, port), nil
}

// splitHostPort parses HOST:PORT. The port may be a service name.
func splitHostPort(ctx context.Context, proto, network, address string) (host string, port uint16, err error) {
	if err := checkNetwork(proto, network); err != nil {
		return "", 0, err
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := net.DefaultResolver.LookupPort(ctx, proto, service)
	return host, uint16(n), err
}

// lookupHost returns at least one address of a host: for a name, those of the adapter's IP
// version. It returns an error if a name such as "tcp4" or "udp6" requires the other IP version.
func (s *Stack) lookupHost(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = hostaddr.Canonical(ip)
		if strings.HasSuffix(network, "4") && ip.Is6() || strings.HasSuffix(network, "6") && ip.Is4() {
			return nil, errUnsuitable(host)
		}
		return []netip.Addr{ip}, nil
	}
	family := "ip4"
	if s.cm.Addr().Addr().Is6() {
		family = "ip6"
	}
	if strings.HasSuffix(network, "4") && family == "ip6" || strings.HasSuffix(network, "6") && family == "ip4" {
		return nil, errUnsuitable(host)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, family, host)
	for i := range ips {
		ips[i] = hostaddr.Canonical(ips[i])
	}
	return ips, err
}

// errUnsuitable returns package net's error for an address of the wrong IP version.
func errUnsuitable(host string) error {
	return &net.AddrError{Err: "no suitable address found", Addr: host}
}
