package wire

// The smallest and the largest path MTU, in bytes of payload.
const (
	MinMTU = 256
	MaxMTU = 4096
)

// Overhead in bytes, IP header to ICRC, of the packet with the most headers and a
// full MTU: RDMA WRITE ONLY with immediate. Linux rdma_rxe uses 80 for both address
// families, which is more than IPv4 needs, and kept so that both ends compute the
// same path MTU, but 4 bytes too few for IPv6.
// Source: Linux, drivers/infiniband/sw/rxe/rxe_param.h.
const (
	overheadIPv4 = 80
	overheadIPv6 = IPv6Len + UDPLen + BTHLen + RETHLen + ImmLen + ICRCLen
)

// PathMTU returns the largest path MTU in bytes whose packets fit into IP packets of mtu
// bytes, the MTU of a network interface, or 0 if there is none. RoCE packets must not be
// fragmented.
func PathMTU(mtu int, v6 bool) int {
	overhead := overheadIPv4
	if v6 {
		overhead = overheadIPv6
	}
	for n := MaxMTU; n >= MinMTU; n /= 2 {
		if n+overhead <= mtu {
			return n
		}
	}
	return 0
}
