package rnic

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/verbs"
)

// An addrList is a list of addresses of which a device takes the first that is free.
type addrList []hostaddr.Entry

// portsAbove is the number of ports above 4791 that are tried for an address
// without a port.
const portsAbove = 64

// candidates returns the addresses to try, in order. Prefixes in which this
// machine has no address are skipped if there are others.
func (a addrList) candidates(anyPort bool) ([]netip.AddrPort, error) {
	var list, above []netip.AddrPort
	var none error
	for _, c := range a {
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
		return nil, fmt.Errorf("%w: %w", verbs.ErrInvalid, none)
	}
	return append(list, above...), nil
}

// heldByProcess reports whether a device of this process is bound to the
// address.
func heldByProcess(at netip.AddrPort) bool {
	_, ours := findHolder(at)
	return ours
}
