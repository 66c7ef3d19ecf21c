package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// A frame is a message of the RDMA emulation: a segment of an RDMARead or RDMAWrite, an
// atomic operation, or a reply. It has the length of a packet header, and its last byte
// distinguishes the two.
type frame struct {
	Transfer uint64 // ID of the transfer at its initiator
	Addr     uint64
	Offset   uint64 // offset of a segment in the transfer; of an atomic and its reply, an operand
	New      uint64 // of compare-and-swap
	Key      uint32
	Bytes    uint32 // length of the payload, or requested by a read; below 2^24
	Kind     uint8
}

// Kinds of frames. None is an envelope.Kind.
const (
	writeFrame     = 0x80 + iota // segment of an RDMAWrite
	writeLastFrame               // last segment of an RDMAWrite; requests doneFrame
	readFrame                    // requests readReplyFrame
	readReplyFrame               // payload: data read
	addFrame                     // fetch-and-add; requests doneFrame
	swapFrame                    // compare-and-swap; requests doneFrame
	doneFrame
	pingFrame // requests pongFrame
	pongFrame
	frameEnd
)

// maxFramePayload is the maximum payload of a frame in bytes.
const maxFramePayload = 64 << 10

// isFrame reports whether a header is that of a frame.
func isFrame(b []byte) bool { return b[envelope.Size-1] >= writeFrame }

func (f *frame) marshalTo(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], f.Transfer)
	le.PutUint64(b[8:], f.Addr)
	le.PutUint64(b[16:], f.Offset)
	le.PutUint64(b[24:], f.New)
	le.PutUint32(b[32:], f.Key)
	le.PutUint32(b[36:], f.Bytes|uint32(f.Kind)<<24)
}

func (f *frame) unmarshal(b []byte) error {
	le := binary.LittleEndian
	last := le.Uint32(b[36:])
	*f = frame{Transfer: le.Uint64(b[0:]), Addr: le.Uint64(b[8:]), Offset: le.Uint64(b[16:]), New: le.Uint64(b[24:]),
		Key: le.Uint32(b[32:]), Bytes: last & (1<<24 - 1), Kind: uint8(last >> 24)}
	if f.Kind >= frameEnd || f.Bytes > maxFramePayload {
		return fmt.Errorf("%w: frame %#x of %d bytes", envelope.ErrMalformed, f.Kind, f.Bytes)
	}
	return nil
}

// payloadSize returns the number of payload bytes that follow.
func (f *frame) payloadSize() int {
	if f.Kind == writeFrame || f.Kind == writeLastFrame || f.Kind == readReplyFrame {
		return int(f.Bytes)
	}
	return 0
}
