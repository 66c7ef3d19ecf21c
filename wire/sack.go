package wire

import "encoding/binary"

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

// ParseSackETH reads the header from b, which must hold SackETHLen bytes.
func ParseSackETH(b []byte) SackETH { return SackETH{Done: binary.BigEndian.Uint64(b)} }
