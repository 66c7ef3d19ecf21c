package wire

import "net/netip"

// CanonicalAddr returns a as packets and GIDs carry it: an IPv4-mapped IPv6
// address (RFC 4291, 2.5.5.2) becomes IPv4, and an IPv6 zone (RFC 4007) is
// removed. A zone is the name of an interface on one machine: the socket of a
// link needs it, and no other machine knows it. Addresses that are compared, key
// a map or go to a peer are canonical; two canonical addresses are equal if and
// only if their GIDs are.
func CanonicalAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// CanonicalAddrPort returns a with its address in canonical form.
func CanonicalAddrPort(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(CanonicalAddr(a.Addr()), a.Port())
}

// A Path is a resolved address vector: the UDP address of the peer's adapter and
// fields of the IP header.
//
// A Path is shared by many packets and must not change until all packets built for
// it were sent.
type Path struct {
	Dst          netip.AddrPort // peer adapter, canonical; port 4791 unless several adapters share one address
	TrafficClass uint8          // IPv4 TOS or IPv6 traffic class: DSCP in bits 7..2, ECN in bits 1..0
	HopLimit     uint8          // IPv4 TTL or IPv6 hop limit; 0 means 64, or the system's default for a multicast group
	FlowLabel    uint32         // IPv6 flow label, 20 bits; 0 means the system's default
}
