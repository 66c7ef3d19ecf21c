package hostaddr

import "net/netip"

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
