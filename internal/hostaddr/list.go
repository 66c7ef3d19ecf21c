// Package hostaddr finds this host's addresses: those of its interfaces, the source address of
// the route to a peer, and those that a list such as SOFTRNIC_ADDR matches.
//
//	list, err := hostaddr.Parse("10.77.0.0/24:4791-4799, 127.0.0.1")
//	ip, err := hostaddr.Toward(netip.MustParseAddr("10.77.0.2")) // the source of the route
package hostaddr

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
)

// Entry is an element of a list of addresses: one address or all addresses of this
// host in a prefix, each with a range of ports.
type Entry struct {
	Prefix      netip.Prefix // of a single address: the full length
	Zone        string       // of an IPv6 link-local address
	First, Last uint16       // port range, inclusive
	Ports       bool         // the entry has a port range
}

// Parse parses a comma-separated list. An entry is an address, an address with a port or a
// range of ports, or a prefix with or without ports:
//
//	192.0.2.1
//	192.0.2.1:4791-4799, [2001:db8::1]:4791
//	127.0.0.0/8, 10.77.0.0/24:4791-4799, [2001:db8::/64]:4791-4799
//
// The error names the malformed entry and lists the valid forms.
func Parse(s string) ([]Entry, error) {
	var list []Entry
	for text := range strings.SplitSeq(s, ",") {
		text = strings.TrimSpace(text)
		e, ok := parseEntry(text)
		if !ok {
			return nil, fmt.Errorf("%q is not an address: want for example 192.0.2.1, 127.0.0.2:4791, [2001:db8::1]:4791, "+
				"a range of ports 192.0.2.1:4791-4799, a prefix 192.0.2.0/24 or 192.0.2.0/24:4791-4799, or several of these with commas between", text)
		}
		if ip := e.Prefix.Addr(); ip.IsUnspecified() || ip.IsMulticast() {
			return nil, fmt.Errorf("%v is not a single unicast address", ip)
		}
		list = append(list, e)
	}
	return list, nil
}

func parseEntry(text string) (Entry, bool) {
	if e, ok := parsePrefix(unbracket(text)); ok {
		return e, true
	}
	if at, err := netip.ParseAddrPort(text); err == nil { // accepts port 0
		e, _ := parsePrefix(at.Addr().String())
		e.Ports, e.First, e.Last = true, at.Port(), at.Port()
		return e, true
	}
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return Entry{}, false
	}
	where, ports := text[:i], text[i+1:]
	if inner, ok := strings.CutPrefix(where, "["); ok {
		if where, ok = strings.CutSuffix(inner, "]"); !ok {
			return Entry{}, false
		}
	} else if strings.Contains(where, ":") {
		return Entry{}, false // IPv6 without brackets is ambiguous
	}
	low, high, isRange := strings.Cut(ports, "-")
	if !isRange {
		high = low
	}
	first, err := strconv.ParseUint(low, 10, 16)
	last, err2 := strconv.ParseUint(high, 10, 16)
	e, ok := parsePrefix(where)
	if err != nil || err2 != nil || first == 0 || last < first {
		return Entry{}, false
	}
	e.Ports, e.First, e.Last = true, uint16(first), uint16(last)
	return e, ok
}

// unbracket removes the brackets around an IPv6 address or prefix without a port.
func unbracket(s string) string {
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") && strings.Contains(inner, ":") {
		return inner[:len(inner)-1]
	}
	return s
}

// parsePrefix parses an address or a prefix.
func parsePrefix(text string) (Entry, bool) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return Entry{Prefix: netip.PrefixFrom(ip.WithZone(""), ip.BitLen()), Zone: ip.Zone()}, true
	}
	p, err := netip.ParsePrefix(text)
	return Entry{Prefix: p}, err == nil
}

// Join formats a list in the form that Parse accepts.
func Join(list []Entry) string {
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = e.String()
	}
	return strings.Join(words, ",")
}

// String returns the entry in the form that Parse accepts.
func (e Entry) String() string {
	where := e.Prefix.String()
	if e.Prefix.IsSingleIP() {
		where = e.Prefix.Addr().WithZone(e.Zone).String()
	}
	if !e.Ports {
		return where
	}
	if e.Prefix.Addr().Is6() {
		where = "[" + where + "]"
	}
	if e.First == e.Last {
		return fmt.Sprintf("%s:%d", where, e.First)
	}
	return fmt.Sprintf("%s:%d-%d", where, e.First, e.Last)
}

// ErrNone is the error of a prefix that contains no address of this host's interfaces.
var ErrNone = errors.New("no interface of this machine has an address in")

// Addrs returns the addresses of the entry: the single address, also if it is not one of this
// host, or the addresses of this host's interfaces in the prefix. On Linux every address in
// 127.0.0.0/8 is local; for such a prefix they are the lowest one and random ones. If a prefix
// contains none, the error wraps ErrNone.
func (e Entry) Addrs() ([]netip.Addr, error) {
	if e.Prefix.IsSingleIP() {
		return []netip.Addr{e.Prefix.Addr().WithZone(e.Zone)}, nil
	}
	if ip := e.Prefix.Addr(); runtime.GOOS == "linux" && ip.Is4() && ip.IsLoopback() {
		return DrawLoopback(e.Prefix), nil
	}
	own, err := Own()
	if err != nil {
		return nil, err
	}
	var list []netip.Addr
	for _, ip := range own {
		if e.Prefix.Contains(ip.WithZone("")) {
			list = append(list, ip)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w %v; `ip addr` lists the addresses", ErrNone, e.Prefix)
	}
	return list, nil
}

// randomAddrs is the number of random addresses that DrawLoopback returns.
const randomAddrs = 64

// DrawLoopback returns the lowest address of a prefix in 127.0.0.0/8 and random others.
func DrawLoopback(in netip.Prefix) []netip.Addr {
	low := in.Masked().Addr().As4()
	host := uint32(1)<<(32-in.Bits()) - 1 // mask of the bits to draw
	at := func(n uint32) netip.Addr {
		n &= host
		return netip.AddrFrom4([4]byte{low[0], low[1] | byte(n>>16), low[2] | byte(n>>8), low[3] | byte(n)})
	}
	list := []netip.Addr{at(1)}
	var b [4 * randomAddrs]byte
	rand.Read(b[:])
	for i := 0; i < len(b); i += 4 {
		if ip := at(binary.NativeEndian.Uint32(b[i:])); ip.As4()[3] != 0 && ip.As4()[3] != 255 {
			list = append(list, ip)
		}
	}
	return list
}

// Canonical returns a as packets and GIDs carry it: an IPv4-mapped IPv6
// address (RFC 4291, 2.5.5.2) becomes IPv4, and an IPv6 zone (RFC 4007) is
// removed. A zone is the name of an interface on one machine: the socket of a
// link needs it, and no other machine knows it. Addresses that are compared, key
// a map or go to a peer are canonical; two canonical addresses are equal if and
// only if their GIDs are.
func Canonical(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// CanonicalPort returns a with its address in canonical form.
func CanonicalPort(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(Canonical(a.Addr()), a.Port())
}
