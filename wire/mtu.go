package wire

// Path MTUs in bytes of payload.
const (
	MinMTU = 256
	MaxMTU = 4096
)

// MTUBytes returns the path MTU in bytes for a code of the verbs (1 is 256,
// 5 is 4096), or 0 if there is no such code.
func MTUBytes(enum int) int {
	if enum < 1 || enum > 5 {
		return 0
	}
	return 128 << enum
}

// MTUEnum returns the code of the verbs for a path MTU in bytes, or 0 if it is
// none of 256, 512, 1024, 2048 and 4096.
func MTUEnum(bytes int) int {
	for enum := 1; enum <= 5; enum++ {
		if MTUBytes(enum) == bytes {
			return enum
		}
	}
	return 0
}

// Overhead is the number of bytes from the IP header to the ICRC around the
// payload of the packet with most headers that can carry a full one, RDMA WRITE
// ONLY with immediate.
const (
	overheadIPv4 = IPv4Len + UDPLen + BTHLen + RETHLen + ImmLen + ICRCLen
	overheadIPv6 = IPv6Len + UDPLen + BTHLen + RETHLen + ImmLen + ICRCLen
)

// ForInterface returns the largest path MTU in bytes whose packets fit
// unfragmented into IP packets of mtu bytes, or 0 if not even 256 do.
//
// Linux rdma_rxe subtracts 80 for both families. That is generous for IPv4, and
// kept so that both ends of a link come to the same result; for IPv6 it is 4
// short of a WRITE ONLY with immediate.
func ForInterface(mtu int, v6 bool) int {
	overhead := max(overheadIPv4, rxeOverhead)
	if v6 {
		overhead = max(overheadIPv6, rxeOverhead)
	}
	for enum := 5; enum >= 1; enum-- {
		if n := MTUBytes(enum); n+overhead <= mtu {
			return n
		}
	}
	return 0
}

const rxeOverhead = 80
