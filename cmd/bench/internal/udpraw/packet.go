package udpraw

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Packets have the size of a RoCE v2 MIDDLE packet, the most frequent one of a long message:
// BTH, payload, ICRC.
const (
	headerLen  = 12
	trailerLen = 4
	overhead   = headerLen + trailerLen
)

// MaxPayload is the maximum payload of a packet in bytes.
const MaxPayload = maxDatagram - overhead

// workingSet is the size of the memory through which payload cycles, so that copies do not
// always use the same cached buffer.
const workingSet = 4 << 20

// errCorrupt is the error of a packet with a wrong CRC.
var errCorrupt = errors.New("udpraw: packet with wrong CRC")

// buildPacket writes one packet into p: header, a copy of payload, and the CRC of both. len(p)
// is len(payload) + overhead.
func buildPacket(p, payload []byte, psn uint64) {
	binary.BigEndian.PutUint64(p[4:], psn)
	copy(p[headerLen:], payload)
	end := len(p) - trailerLen
	binary.LittleEndian.PutUint32(p[end:], crc32.ChecksumIEEE(p[:end]))
}

// verifyPacket verifies the CRC of p and copies its payload to dst.
func verifyPacket(p, dst []byte) error {
	end := len(p) - trailerLen
	if binary.LittleEndian.Uint32(p[end:]) != crc32.ChecksumIEEE(p[:end]) {
		return errCorrupt
	}
	copy(dst, p[headerLen:end])
	return nil
}

// A workingMemory is a working set that is used in consecutive chunks.
type workingMemory struct {
	b   []byte
	off int
}

func newWorkingMemory() *workingMemory {
	m := &workingMemory{b: make([]byte, workingSet)}
	for i := range m.b {
		m.b[i] = byte(i * 7 / 5)
	}
	return m
}

// nextChunk returns the next n bytes. It wraps around at the end.
func (m *workingMemory) nextChunk(n int) []byte {
	if m.off+n > len(m.b) {
		m.off = 0
	}
	m.off += n
	return m.b[m.off-n : m.off]
}
