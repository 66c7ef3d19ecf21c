package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

// openListener opens the listener of a rank: at Listen if set, otherwise at the first
// address of Addrs that this host has. zone is that of a link-local address, which not
// every system reports for a socket.
func (o *Options) openListener() (l net.Listener, zone string, err error) {
	if o.Listen != "" || o.Addrs == "" {
		if o.Listen == "" {
			o.Listen = "127.0.0.1:0"
		}
		if at, err := netip.ParseAddrPort(o.Listen); err == nil {
			zone = at.Addr().Zone()
		}
		l, err = net.Listen("tcp", o.Listen)
		return l, zone, err
	}
	entries, err := hostaddr.Parse(o.Addrs)
	if err != nil {
		return nil, "", fmt.Errorf("tcp fabric: addresses %s: %w", o.Addrs, err)
	}
	var failed error
	for _, e := range entries {
		ips, err := e.Addrs()
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		first, last := 0, 0 // chosen by the system
		if e.First < e.Last {
			first, last = int(e.First), int(e.Last)
		}
		for _, ip := range ips {
			if !hostaddr.IsOwn(ip) {
				failed = errors.Join(failed, fmt.Errorf("%v: no interface of this host has this address", ip))
				continue
			}
			for port := first; port <= last; port++ {
				l, err := net.Listen("tcp", netip.AddrPortFrom(ip, uint16(port)).String())
				if err == nil {
					return l, ip.Zone(), nil
				}
				if port == last {
					failed = errors.Join(failed, err)
				}
			}
		}
	}
	return nil, "", fmt.Errorf("tcp fabric: listen at %s: %w", o.Addrs, failed)
}

// advertisedAddress returns the listener's address for other ranks, without the zone of
// a link-local address, which is meaningless on other hosts.
func (f *Fabric) advertisedAddress() string {
	at := f.listener.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()).String()
}

// dialAddress connects to an advertised address. A link-local address is reached
// through this rank's own interface.
func (f *Fabric) dialAddress(ctx context.Context, addr string) (net.Conn, error) {
	if at, err := netip.ParseAddrPort(addr); err == nil && at.Addr().Is6() && at.Addr().IsLinkLocalUnicast() {
		addr = netip.AddrPortFrom(at.Addr().WithZone(f.zone), at.Port()).String()
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}
