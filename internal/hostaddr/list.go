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
	Prefix      netip.Prefix // one address has all its bits
	Zone        string       // of an IPv6 link-local address
	First, Last uint16       // the ports, inclusive
	Ports       bool         // First and Last were given
}

// Parse parses a list with commas between. An entry is an address, an address with a
// port or a range of ports, or a prefix, with or without these:
//
//	192.0.2.1
//	192.0.2.1:4791-4799, [2001:db8::1]:4791
//	127.0.0.0/8, 10.77.0.0/24:4791-4799, [2001:db8::/64]:4791-4799
//
// The error says which entry is wrong and lists the forms.
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
			return nil, fmt.Errorf("%v is not one address of this machine, by which peers reach the device", ip)
		}
		list = append(list, e)
	}
	return list, nil
}

func parseEntry(text string) (Entry, bool) {
	if e, ok := parsePrefix(Unbracket(text)); ok {
		return e, true
	}
	if at, err := netip.ParseAddrPort(text); err == nil { // port 0 as well
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
		return Entry{}, false // IPv6 without brackets: the last word could be a port or a part
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

// Unbracket removes the brackets around an IPv6 address or prefix without a port.
func Unbracket(s string) string {
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

// Join is the inverse of Parse.
func Join(list []Entry) string {
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = e.String()
	}
	return strings.Join(words, ",")
}

// String returns the entry in the form that Parse takes.
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

// ErrNone says that no interface of this host has an address in a prefix.
var ErrNone = errors.New("no interface of this machine has an address in")

// Addrs returns the addresses that the entry means: the single one, whether it is
// this host's or not, or those of this host's interfaces in the prefix. Of a prefix in
// 127.0.0.0/8, every address of which is the host's own on Linux, they are the
// lowest and some that are drawn at random. The error of a prefix without any wraps
// ErrNone.
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

// randomAddrs is the number of addresses that DrawLoopback draws beside the lowest.
const randomAddrs = 64

// DrawLoopback returns addresses of a prefix in 127.0.0.0/8: the lowest, and others
// drawn at random.
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
