package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// frame is what goes between the packets of ranks: a piece of a Fetch or a Store,
// an Atomic, and what answers them. It is as long as a packet's header, and its
// last byte tells the two apart.
type frame struct {
	Transfer uint64 // of the rank that began it
	Addr     uint64
	Offset   uint64 // of a piece in its move; of Atomic and its Done, an operand
	New      uint64 // of Atomic
	Key      uint32
	Bytes    uint32 // below 2^24: of the payload, or wanted by Fetch
	Kind     uint8
}

// Kinds of frames, none of which is an envelope.Kind.
const (
	writeFrame     = 0x80 + iota // payload: what is stored
	writeLastFrame               // the same, and Done is wanted
	readFrame                    // Data is wanted
	readReplyFrame               // payload: what was fetched
	addFrame                     // Done is wanted
	swapFrame                    // the same
	doneFrame
	pingFrame // Pong is wanted
	pongFrame
	frameEnd
)

// maxFramePayload is the payload of the longest frame.
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

// payloadSize is how many bytes follow.
func (f *frame) payloadSize() int {
	if f.Kind == writeFrame || f.Kind == writeLastFrame || f.Kind == readReplyFrame {
		return int(f.Bytes)
	}
	return 0
}
