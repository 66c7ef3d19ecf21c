package rnic

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/verbs"
)

// Addrs are addresses of which a device takes the first that is free. The zero
// value has none.
type Addrs struct{ choices []addrChoice }

// addrChoice is one address or a prefix, with a range of ports.
type addrChoice struct {
	prefix      netip.Prefix // one address has all its bits
	zone        string
	ports       bool // there are any; without, it is 4791
	first, last uint16
}

// ParseAddrs parses a list with commas between. Each entry is an address with
// or without port, as ParseAddr has it, an address with a range of ports, or a
// prefix, which stands for all addresses of this machine in it:
//
//	192.0.2.1
//	192.0.2.1:4791-4799, [2001:db8::1]:4791-4799
//	127.0.0.0/8
//
// Without a port it is 4791. If devices of this process have that already, it
// is one of the ports above: peers learn it from the endpoint.
func ParseAddrs(s string) (Addrs, error) {
	var a Addrs
	for entry := range strings.SplitSeq(s, ",") {
		entry = strings.TrimSpace(entry)
		c, ok := parseChoice(entry)
		if !ok {
			return Addrs{}, fmt.Errorf("%q is not an address: want for example 192.0.2.1, 127.0.0.2:4791, [2001:db8::1]:4791, "+
				"a range of ports 192.0.2.1:4791-4799, a prefix 192.0.2.0/24, or several of these with commas between (%w)", entry, verbs.ErrInvalid)
		}
		if ip := c.prefix.Addr(); ip.IsUnspecified() || ip.IsMulticast() {
			return Addrs{}, fmt.Errorf("%v is not one address of this machine, by which peers reach the device (%w)", ip, verbs.ErrInvalid)
		}
		a.choices = append(a.choices, c)
	}
	return a, nil
}

func parseChoice(s string) (addrChoice, bool) {
	one := func(ip netip.Addr) addrChoice {
		return addrChoice{prefix: netip.PrefixFrom(ip.WithZone(""), ip.BitLen()), zone: ip.Zone()}
	}
	if ip, err := netip.ParseAddr(unbracket(s)); err == nil {
		return one(ip), true
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return addrChoice{prefix: p}, true
	}
	if at, err := netip.ParseAddrPort(s); err == nil {
		c := one(at.Addr())
		c.ports, c.first, c.last = true, at.Port(), at.Port()
		return c, true
	}
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return addrChoice{}, false
	}
	at, err := netip.ParseAddrPort(s[:i])
	last, err2 := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil || err2 != nil || at.Port() == 0 || last < uint64(at.Port()) {
		return addrChoice{}, false
	}
	c := one(at.Addr())
	c.ports, c.first, c.last = true, at.Port(), uint16(last)
	return c, true
}

// unbracket removes the brackets around an IPv6 address without a port.
func unbracket(s string) string {
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") && strings.Contains(inner, ":") {
		return inner[:len(inner)-1]
	}
	return s
}

// IsZero reports whether there are no addresses.
func (a Addrs) IsZero() bool { return len(a.choices) == 0 }

// String is the list in the form that ParseAddrs takes.
func (a Addrs) String() string {
	words := make([]string, len(a.choices))
	for i, c := range a.choices {
		words[i] = c.String()
	}
	return strings.Join(words, ",")
}

func (c addrChoice) String() string {
	ip := c.prefix.Addr().WithZone(c.zone)
	switch {
	case !c.prefix.IsSingleIP():
		return c.prefix.String()
	case !c.ports:
		return ip.String()
	case c.first == c.last:
		return netip.AddrPortFrom(ip, c.first).String()
	}
	return fmt.Sprintf("%v-%d", netip.AddrPortFrom(ip, c.first), c.last)
}

// candidates lists the addresses to try, in order.
func (a Addrs) candidates(anyPort bool) ([]netip.AddrPort, error) {
	var list []netip.AddrPort
	for _, c := range a.choices {
		ips, err := c.ips()
		if err != nil {
			return nil, err
		}
		for _, ip := range ips {
			switch {
			case c.ports:
				for port := int(c.first); port <= int(c.last); port++ {
					list = append(list, netip.AddrPortFrom(ip, uint16(port)))
				}
			case anyPort:
				list = append(list, netip.AddrPortFrom(ip, 0))
			default:
				list = append(list, netip.AddrPortFrom(ip, roceUDPPort))
			}
		}
	}
	if anyPort {
		return list, nil
	}
	return append(list, a.beside()...), nil
}

// portsBeside is how many ports above 4791 are tried beside a device of the
// same process.
const portsBeside = 64

// beside are the ports above 4791 of an address that was given without a port
// and whose 4791 a device of this process has.
func (a Addrs) beside() (list []netip.AddrPort) {
	for _, c := range a.choices {
		ip := c.prefix.Addr().WithZone(c.zone)
		if _, ours := holder(netip.AddrPortFrom(ip, roceUDPPort)); !ours || c.ports || !c.prefix.IsSingleIP() {
			continue
		}
		for port := uint16(1); port <= portsBeside; port++ {
			list = append(list, netip.AddrPortFrom(ip, roceUDPPort+port))
		}
	}
	return list
}

// ips are the addresses of this machine that the entry means.
func (c addrChoice) ips() ([]netip.Addr, error) {
	if c.prefix.IsSingleIP() {
		return []netip.Addr{c.prefix.Addr().WithZone(c.zone)}, nil
	}
	if ip := c.prefix.Addr(); runtime.GOOS == "linux" && ip.Is4() && ip.IsLoopback() {
		return drawLoopback(c.prefix), nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var list []netip.Addr
	for _, a := range own {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && c.prefix.Contains(p.Addr().Unmap()) {
			list = append(list, p.Addr().Unmap())
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no interface of this machine has an address in %v; `ip addr` lists those it has (%w)", c.prefix, verbs.ErrInvalid)
	}
	return list, nil
}

// drawLoopback draws addresses from a prefix in 127.0.0.0/8, every one of which
// is the machine's own on Linux. The first is the lowest.
func drawLoopback(in netip.Prefix) []netip.Addr {
	low := in.Masked().Addr().As4()
	host := uint32(1)<<(32-in.Bits()) - 1 // mask of the bits to draw
	at := func(n uint32) netip.Addr {
		n &= host
		return netip.AddrFrom4([4]byte{low[0], low[1] | byte(n>>16), low[2] | byte(n>>8), low[3] | byte(n)})
	}
	list := []netip.Addr{at(1)}
	for range loopbackTries {
		if ip := at(secureRandom()); ip.As4()[3] != 0 && ip.As4()[3] != 255 {
			list = append(list, ip)
		}
	}
	return list
}
