package iwarp

import (
	"encoding/binary"
	"hash/crc32"
)

// Lengths in bytes.
const (
	LengthLen   = 2             // of the length field of an FPDU
	CRCLen      = 4             // of its CRC
	MaxULPDU    = 1<<16 - 1     // of the DDP segment of an FPDU
	minULPDU    = 128           // which every path carries (RFC 5044, section 4.5)
	fpduLen     = LengthLen + 4 // overhead of an FPDU that needs no padding
	TaggedLen   = 14            // of the header of a tagged segment
	UntaggedLen = 18            // of the header of an untagged segment
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AddCRC returns the CRC32c of data with CRC crc (0 at the beginning) followed by b.
func AddCRC(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// PutCRC stores a CRC, the least significant byte first.
func PutCRC(b []byte, crc uint32) { binary.LittleEndian.PutUint32(b, crc) }

// ReadCRC is the inverse of PutCRC.
func ReadCRC(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// PadFor returns the number of bytes of padding behind a segment of n bytes.
func PadFor(n int) int { return -(LengthLen + n) & 3 }

// FPDULen returns the length of the FPDU of a segment of n bytes.
func FPDULen(n int) int { return LengthLen + n + PadFor(n) + CRCLen }

// MaxSegment returns the maximum length of a segment whose FPDU fits in a TCP segment of mss bytes,
// 0 if that is unknown (RFC 5044, section 4.5).
func MaxSegment(mss int) int {
	if mss <= 0 {
		return MaxULPDU
	}
	return min(max(mss-fpduLen-mss%4, minULPDU), MaxULPDU)
}
