package wire

import "encoding/binary"

// ImmLen is the length of the immediate data header (ImmDt) in bytes: 32 bits that
// the receiver finds in its completion. The wire has the number big-endian, so that
// an application that stores it with htonl at one end reads it with ntohl at the
// other.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                        Immediate Data                         |
//	+---------------------------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
const ImmLen = 4

// IETHLen is the length of the invalidate extended transport header in bytes.
const IETHLen = 4

// IETH is the invalidate extended transport header: the key that a SEND with invalidate
// invalidates at the receiver.
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

// parseIETH reads the header from b, which must hold IETHLen bytes.
func parseIETH(b []byte) IETH { return IETH{RKey: binary.BigEndian.Uint32(b)} }

// SackETHLen is the length of the selective acknowledgement header in bytes.
const SackETHLen = 8

// SackETH is the selective acknowledgement extended transport header of UDX_ACKNOWLEDGE,
// which follows the AETH: a bitmap of the executed requests among the 64 requests up
// to the PSN in the BTH.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                                                               |
//	+         Done: the bit of value 2^i is for PSN - i             +
//	|                                                               |
//	+---------------------------------------------------------------+
//
// It is a softrnic extension: see docs/ud-rdma.md.
type SackETH struct {
	Done uint64
}

// Put writes the header to the first SackETHLen bytes of b.
func (h SackETH) Put(b []byte) { binary.BigEndian.PutUint64(b, h.Done) }

// parseSackETH reads the header from b, which must hold SackETHLen bytes.
func parseSackETH(b []byte) SackETH { return SackETH{Done: binary.BigEndian.Uint64(b)} }
