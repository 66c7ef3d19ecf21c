package wire

import "encoding/binary"

// RETHLen is the length of the RDMA extended transport header in bytes.
const RETHLen = 16

// RETH is the RDMA extended transport header: where an RDMA WRITE goes or an
// RDMA READ comes from. In the first packet of a WRITE, Length is that of the
// whole message.
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
//	|                          DMA Length                           |
//	+---------------------------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type RETH struct {
	VA     uint64
	RKey   uint32
	Length uint32 // bytes
}

// Put writes the header to the first RETHLen bytes of b.
func (h RETH) Put(b []byte) {
	b = b[:RETHLen]
	binary.BigEndian.PutUint64(b[0:], h.VA)
	binary.BigEndian.PutUint32(b[8:], h.RKey)
	binary.BigEndian.PutUint32(b[12:], h.Length)
}

// parseRETH reads the header from b, which must hold RETHLen bytes.
func parseRETH(b []byte) RETH {
	b = b[:RETHLen]
	return RETH{
		VA:     binary.BigEndian.Uint64(b[0:]),
		RKey:   binary.BigEndian.Uint32(b[8:]),
		Length: binary.BigEndian.Uint32(b[12:]),
	}
}
