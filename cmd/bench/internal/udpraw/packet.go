package udpraw

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A packet here has the size of a RoCE v2 MIDDLE packet, the one that makes up
// nearly all of a long message: BTH, payload, ICRC.
const (
	headerLen  = 12
	trailerLen = 4
	overhead   = headerLen + trailerLen
)

// MaxPayload is how many bytes of payload a packet has room for.
const MaxPayload = maxDatagram - overhead

// workingSet is the memory that payload is read from and written to in turn, so
// that the copies are not those of one hot buffer.
const workingSet = 4 << 20

// errCorrupt says that a packet arrived with other bytes than it left with.
var errCorrupt = errors.New("udpraw: a packet arrived with a wrong CRC")

// buildPacket writes one packet into p: header, a copy of payload, and the CRC of
// both. len(p) is len(payload) + overhead.
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

// workingMemory is a working set that is walked through in pieces.
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

// nextChunk is the next n bytes; it starts over at the end.
func (m *workingMemory) nextChunk(n int) []byte {
	if m.off+n > len(m.b) {
		m.off = 0
	}
	m.off += n
	return m.b[m.off-n : m.off]
}
