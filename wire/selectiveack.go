package wire

import "encoding/binary"

// MaxSackBlocks is the maximum number of blocks in a selective acknowledgement.
const MaxSackBlocks = 16

const (
	sackHeadLen  = 4
	sackBlockLen = 12
)

// MaxSelectiveAckLen is the length of the longest selective acknowledgement in
// bytes, BTH to ICRC.
const MaxSelectiveAckLen = BTHLen + AETHLen + sackHeadLen + MaxSackBlocks*sackBlockLen + ICRCLen

// SelectiveAck is the payload of RC_SELECTIVE_ACKNOWLEDGE, which follows the
// AETH: the request packets that arrived ahead of the expected one. BTH and AETH
// are those of an acknowledgement.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------------------------------+
//	|       0       |    Blocks     |          Duplicates           |
//	+---------------+---------------+-------------------------------+
//	|       0       |                     PSN                       |
//	+---------------+-----------------------------------------------+
//	|                                                               |
//	+      Arrived: the bit of value 2^i is for PSN + i             +
//	|                                                               |
//	+---------------------------------------------------------------+
//	:                   up to 15 blocks more                        :
//
// It is a softrnic extension: see docs/reliability.md.
type SelectiveAck struct {
	Duplicates uint16 // request packets that had arrived before, modulo 2^16
	Blocks     []SackBlock
}

// SackBlock is a block of a selective acknowledgement: a bitmap of 64 PSNs.
type SackBlock struct {
	PSN     PSN // of bit 0
	Arrived uint64
}

// Len returns the length of the encoded form in bytes.
func (s *SelectiveAck) Len() int { return sackHeadLen + len(s.Blocks)*sackBlockLen }

// Put writes the payload to the first Len bytes of b. There must be at most
// MaxSackBlocks blocks.
func (s *SelectiveAck) Put(b []byte) {
	b[0], b[1] = 0, uint8(len(s.Blocks))
	binary.BigEndian.PutUint16(b[2:], s.Duplicates)
	for i, block := range s.Blocks {
		at := b[sackHeadLen+i*sackBlockLen:]
		binary.BigEndian.PutUint32(at, uint32(block.PSN)&PSNMask)
		binary.BigEndian.PutUint64(at[4:], block.Arrived)
	}
}

// Parse decodes a payload into s, reusing the memory of s.Blocks, and reports
// whether it is well-formed: of the length that the number of blocks requires,
// with reserved bits of 0 and no empty block.
func (s *SelectiveAck) Parse(payload []byte) bool {
	s.Blocks = s.Blocks[:0]
	if len(payload) < sackHeadLen || payload[0] != 0 || payload[1] > MaxSackBlocks ||
		len(payload) != sackHeadLen+int(payload[1])*sackBlockLen {
		return false
	}
	s.Duplicates = binary.BigEndian.Uint16(payload[2:])
	for at := payload[sackHeadLen:]; len(at) > 0; at = at[sackBlockLen:] {
		psn, arrived := binary.BigEndian.Uint32(at), binary.BigEndian.Uint64(at[4:])
		if psn > PSNMask || arrived == 0 {
			return false
		}
		s.Blocks = append(s.Blocks, SackBlock{PSN(psn), arrived})
	}
	return true
}
