package wire

import "encoding/binary"

// ImmLen is the length of the immediate data header in bytes.
const ImmLen = 4

// ImmDt is the immediate data header: 32 bits that the receiver finds in its
// completion. Here it is a number; the wire has it big-endian, so that an
// application that stores it with htonl at one end reads it with ntohl at the
// other.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                        Immediate Data                         |
//	+---------------------------------------------------------------+
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type ImmDt uint32

// Put writes the header to the first ImmLen bytes of b.
func (h ImmDt) Put(b []byte) { binary.BigEndian.PutUint32(b, uint32(h)) }

// ParseImmDt reads the header from b, which must hold ImmLen bytes.
func ParseImmDt(b []byte) ImmDt { return ImmDt(binary.BigEndian.Uint32(b)) }
