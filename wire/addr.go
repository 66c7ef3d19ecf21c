package wire

import "net/netip"

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
