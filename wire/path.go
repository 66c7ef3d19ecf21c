package wire

import "net/netip"

// Path says where a packet goes: the UDP address of the peer's adapter and what
// its IP header carries beside it. It is what remains of an address vector
// once GID and port have been resolved.
//
// A Path is shared by many packets and must not change while a packet that was
// laid out for it has not left.
type Path struct {
	Dst          netip.AddrPort // peer adapter, canonical; port 4791 unless several adapters share one address
	TrafficClass uint8          // IPv4 TOS or IPv6 traffic class: DSCP in bits 7..2, ECN in bits 1..0
	HopLimit     uint8          // IPv4 TTL or IPv6 hop limit; 0 means 64, and to a multicast group what the system has for it
	FlowLabel    uint32         // IPv6 flow label, 20 bits; 0 leaves it to the system
}
