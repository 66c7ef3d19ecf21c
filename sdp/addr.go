package sdp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

// An Addr is the address of one side of a connection: the adapter's IP address and a port of
// SDP's own port space.
type Addr struct{ netip.AddrPort }

// Network returns "sdp".
func (Addr) Network() string { return network }

// errAddrNotAvailable is the error of package net for a foreign address.
var errAddrNotAvailable = &os.SyscallError{Syscall: "bind", Err: syscall.EADDRNOTAVAIL}

// network is the network name in addresses and errors.
const network = "sdp"

// defaultUDPPort is the UDP port of an adapter that announces no other.
const defaultUDPPort = 4791

// checkNetwork accepts "sdp" and the names of the networks of proto, "tcp" or "udp", which
// programs written for that protocol pass on.
func checkNetwork(proto, name string) error {
	switch name {
	case network, proto, proto + "4", proto + "6":
		return nil
	}
	return net.UnknownNetworkError(name)
}

// resolveListenAddr parses an address to listen at. Its host may be omitted and must otherwise be the
// adapter's. It returns the adapter's address, or with syscall.EADDRNOTAVAIL the foreign one.
// proto is "tcp" or "udp" and determines the names of networks and services. A nil ctx is never
// done.
func resolveListenAddr(ctx context.Context, own netip.Addr, proto, network, address string) (netip.AddrPort, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	host, port, err := splitHostPort(ctx, proto, network, address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" {
		return netip.AddrPortFrom(own, port), nil
	}
	ips, err := lookupHost(ctx, own, network, host)
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
func lookupHost(ctx context.Context, own netip.Addr, network, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = hostaddr.Canonical(ip)
		if strings.HasSuffix(network, "4") && ip.Is6() || strings.HasSuffix(network, "6") && ip.Is4() {
			return nil, errUnsuitable(host)
		}
		return []netip.Addr{ip}, nil
	}
	family := "ip4"
	if own.Is6() {
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
