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

// A credit is the state that the sink reports to the source: the number of packets received
// since the socket was opened, and the last round whose end marker has arrived.
type credit struct{ received, round uint64 }

// A creditChannel carries credits from the sink to the source.
type creditChannel interface {
	writeCredit(c credit) error  // called by the sink
	readCredit() (credit, error) // called by the source; returns the newest credit without blocking for long
	close() error
}

// datagramCredits sends credits as datagrams over the data sockets in the opposite direction,
// like the acknowledgements of a transport. Credits are cumulative, so any of them may be lost.
type datagramCredits struct {
	s    socket
	buf  [64 * creditLen]byte
	last credit
}

const creditLen = 16

func (w *datagramCredits) writeCredit(c credit) error {
	binary.LittleEndian.PutUint64(w.buf[0:], c.received)
	binary.LittleEndian.PutUint64(w.buf[8:], c.round)
	return w.s.sendSegments(w.buf[:creditLen], creditLen)
}

func (w *datagramCredits) readCredit() (credit, error) {
	n, err := w.s.tryReceive(w.buf[:])
	if err != nil {
		return w.last, err
	}
	if n >= creditLen && n%creditLen == 0 {
		b := w.buf[n-creditLen:] // the newest of the credits merged by GRO
		w.last = credit{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
	}
	return w.last, nil
}

func (w *datagramCredits) close() error { return nil } // the socket is closed by its owner
