package wire

import "encoding/binary"

// IETHLen is the length of the invalidate extended transport header in bytes.
const IETHLen = 4

// IETH is the invalidate extended transport header: the key that SEND with
// invalidate takes out of use at the receiver.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                             R_Key                             |
//	+---------------------------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type IETH struct {
	RKey uint32
}

// Put writes the header to the first IETHLen bytes of b.
func (h IETH) Put(b []byte) { binary.BigEndian.PutUint32(b, h.RKey) }

// ParseIETH reads the header from b, which must hold IETHLen bytes.
func ParseIETH(b []byte) IETH { return IETH{RKey: binary.BigEndian.Uint32(b)} }
