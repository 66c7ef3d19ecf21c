package wire

import "encoding/binary"

// AETHLen is the length of the ACK extended transport header in bytes.
const AETHLen = 4

// AETH is the ACK extended transport header: it acknowledges, refuses or asks
// to wait.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-----------------------------------------------+
//	|   Syndrome    |           Message Sequence Number             |
//	+---------------+-----------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32 // 24 bits: request messages the responder has completed, modulo 2^24
}

// MSNMask has the 24 bits of an MSN set.
const MSNMask = 1<<24 - 1

// Put writes the header to the first AETHLen bytes of b.
func (h AETH) Put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(h.Syndrome)<<24|h.MSN&MSNMask)
}

// parseAETH reads the header from b, which must hold AETHLen bytes.
func parseAETH(b []byte) AETH {
	v := binary.BigEndian.Uint32(b)
	return AETH{Syndrome: Syndrome(v >> 24), MSN: v & MSNMask}
}
