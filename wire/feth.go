package wire

import "encoding/binary"

// FETHLen is the length of the FLUSH extended transport header in bytes.
const FETHLen = 4

// Bits of FETH.Placement: the properties that the data has when the FLUSH is
// complete.
const (
	PlacementGlobal     uint8 = 1 << 0 // visible to all that access the memory
	PlacementPersistent uint8 = 1 << 1 // kept when power fails
	placementMask       uint8 = 1<<4 - 1
)

// Values of FETH.Selectivity: the memory that is flushed.
const (
	SelectRange  uint8 = 0 // the range of the RETH
	SelectRegion uint8 = 1 // the memory region with the R_Key of the RETH
)

// FETH is the FLUSH extended transport header. It is followed by the RETH.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------+---+-------+
//	|                      Reserved                     |Sel| Place |
//	+---------------------------------------------------+---+-------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type FETH struct {
	Selectivity uint8 // 2 bits
	Placement   uint8 // 4 bits
}

// Put writes the header to the first FETHLen bytes of b.
func (h FETH) Put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(h.Selectivity&3)<<4|uint32(h.Placement&placementMask))
}

// parseFETH reads the header from b, which must hold FETHLen bytes.
func parseFETH(b []byte) FETH {
	v := binary.BigEndian.Uint32(b)
	return FETH{Selectivity: uint8(v>>4) & 3, Placement: uint8(v) & placementMask}
}
