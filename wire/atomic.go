package wire

import "encoding/binary"

// Lengths of the headers of atomic operations in bytes.
const (
	AtomicETHLen    = 28
	AtomicAckETHLen = 8
)

// AtomicETH is the atomic extended transport header: the operands of COMPARE
// SWAP and FETCH ADD on 64 bits at an address that is a multiple of 8.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                                                               |
//	+                        Virtual Address                        +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                             R_Key                             |
//	+---------------------------------------------------------------+
//	|                                                               |
//	+                       Swap or Add Data                        +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                                                               |
//	+                         Compare Data                          +
//	|                                                               |
//	+---------------------------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type AtomicETH struct {
	VA      uint64
	RKey    uint32
	SwapAdd uint64 // value stored by COMPARE SWAP, added by FETCH ADD
	Compare uint64 // COMPARE SWAP only; 0 otherwise
}

// Put writes the header to the first AtomicETHLen bytes of b.
func (h AtomicETH) Put(b []byte) {
	b = b[:AtomicETHLen]
	binary.BigEndian.PutUint64(b[0:], h.VA)
	binary.BigEndian.PutUint32(b[8:], h.RKey)
	binary.BigEndian.PutUint64(b[12:], h.SwapAdd)
	binary.BigEndian.PutUint64(b[20:], h.Compare)
}

// parseAtomicETH reads the header from b, which must hold AtomicETHLen bytes.
func parseAtomicETH(b []byte) AtomicETH {
	b = b[:AtomicETHLen]
	return AtomicETH{
		VA:      binary.BigEndian.Uint64(b[0:]),
		RKey:    binary.BigEndian.Uint32(b[8:]),
		SwapAdd: binary.BigEndian.Uint64(b[12:]),
		Compare: binary.BigEndian.Uint64(b[20:]),
	}
}

// AtomicAckETH is the atomic ACK extended transport header: the original value of
// the memory. It follows the AETH.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                                                               |
//	+                     Original Remote Data                      +
//	|                                                               |
//	+---------------------------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type AtomicAckETH struct {
	Orig uint64
}

// Put writes the header to the first AtomicAckETHLen bytes of b.
func (h AtomicAckETH) Put(b []byte) { binary.BigEndian.PutUint64(b, h.Orig) }

// parseAtomicAckETH reads the header from b, which must hold AtomicAckETHLen
// bytes.
func parseAtomicAckETH(b []byte) AtomicAckETH {
	return AtomicAckETH{Orig: binary.BigEndian.Uint64(b)}
}
