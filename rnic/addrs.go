package rnic

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/verbs"
)

// Addrs is a list of addresses of which a device takes the first that is free.
// The zero value is empty.
type Addrs struct{ choices []hostaddr.Entry }

// ParseAddrs parses a comma-separated list. Each entry is an address with or
// without a port or a range of ports, or a prefix, which stands for all addresses
// of this machine in it. An IPv6 link-local address needs its interface, and an
// IPv4-mapped one is the IPv4 address:
//
//	192.0.2.1, 2001:db8::1, fe80::1%eth0
//	192.0.2.1:4791-4799, [2001:db8::1]:4791-4799
//	127.0.0.0/8, 192.0.2.0/24, [2001:db8::/64]:4791-4799
//
// Addresses that this machine does not have are skipped if it has another one,
// so that one list serves several hosts.
//
// The default port is 4791. If another device holds it, the ports above are
// tried: for an address only if that device is of this process, for a prefix of
// real interfaces in any case. Peers learn the port from the endpoint.
func ParseAddrs(s string) (Addrs, error) {
	list, err := hostaddr.Parse(s)
	if err != nil {
		return Addrs{}, fmt.Errorf("%w (%w)", err, verbs.ErrInvalid)
	}
	return Addrs{choices: list}, nil
}

// IsZero reports whether there are no addresses.
func (a Addrs) IsZero() bool { return len(a.choices) == 0 }

// String returns the list in the form that ParseAddrs accepts.
func (a Addrs) String() string { return hostaddr.Join(a.choices) }

// portsAbove is the number of ports above 4791 that are tried for an address
// without a port.
const portsAbove = 64

// candidates returns the addresses to try, in order. Prefixes in which this
// machine has no address are skipped if there are others.
func (a Addrs) candidates(anyPort bool) ([]netip.AddrPort, error) {
	var list, above []netip.AddrPort
	var none error
	for _, c := range a.choices {
		ips, err := c.Addrs()
		if errors.Is(err, hostaddr.ErrNone) {
			none = errors.Join(none, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, ip := range ips {
			switch {
			case c.Ports:
				for port := int(c.First); port <= int(c.Last); port++ {
					list = append(list, netip.AddrPortFrom(ip, uint16(port)))
				}
				continue
			case anyPort:
				list = append(list, netip.AddrPortFrom(ip, 0))
				continue
			}
			at := netip.AddrPortFrom(ip, roceUDPPort)
			list = append(list, at)
			if shared := !c.Prefix.IsSingleIP() && !ip.IsLoopback(); shared || c.Prefix.IsSingleIP() && heldByProcess(at) {
				for port := uint16(1); port <= portsAbove; port++ {
					above = append(above, netip.AddrPortFrom(ip, roceUDPPort+port))
				}
			}
		}
	}
	if len(list) == 0 && none != nil {
		return nil, fmt.Errorf("%w (%w)", none, verbs.ErrInvalid)
	}
	return append(list, above...), nil
}

// heldByProcess reports whether a device of this process is bound to the
// address.
func heldByProcess(at netip.AddrPort) bool {
	_, ours := findHolder(at)
	return ours
}
