package wire

import "encoding/binary"

// DETHLen is the length of the datagram extended transport header in bytes.
const DETHLen = 8

// DETH is the datagram extended transport header of UD packets.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                             Q_Key                             |
//	+---------------+-----------------------------------------------+
//	|   reserved    |                  Source QPN                   |
//	+---------------+-----------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type DETH struct {
	QKey   uint32
	SrcQPN uint32 // 24 bits
}

// QKeyGSI is the well-known Q_Key of QP 1.
const QKeyGSI = 0x80010000

// Put writes the header to the first DETHLen bytes of b.
func (h DETH) Put(b []byte) {
	b = b[:DETHLen]
	binary.BigEndian.PutUint32(b[0:], h.QKey)
	binary.BigEndian.PutUint32(b[4:], h.SrcQPN&QPNMask)
}

// ParseDETH reads the header from b, which must hold DETHLen bytes.
func ParseDETH(b []byte) DETH {
	b = b[:DETHLen]
	return DETH{
		QKey:   binary.BigEndian.Uint32(b[0:]),
		SrcQPN: binary.BigEndian.Uint32(b[4:]) & QPNMask,
	}
}
