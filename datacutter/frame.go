package datacutter

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Every message on a connection is a frame:
//
//	 0       1       2               4                               8
//	+-------+-------+---------------+-------------------------------+---------
//	| 0xDC  | kind  | reserved, 0   | length of the payload, bytes  | payload
//	+-------+-------+---------------+-------------------------------+---------
//
// Integers are big-endian. The producer of a stream opens the connection and sends hello, units, an end for
// each work, and bye. The consumer sends welcome, acknowledgements if the stream is demand-driven, and bye.
// Either side may abort the run.
type kind uint8

const (
	kindHello   kind = iota + 1 // request to connect a stream
	kindWelcome                 // all instances downstream are connected
	kindUnit                    // a unit of data
	kindEnd                     // end of the current work
	kindAck                     // the consumer has finished one unit
	kindBye                     // all works are finished
	kindAbort                   // the run has failed; the payload is the reason
	kinds
)

var kindNames = [kinds]string{"frame of kind 0", "hello", "welcome", "unit", "end", "acknowledgement", "bye", "abort"}

func (k kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("frame of kind %d", uint8(k))
}

const (
	frameMagic  = 0xDC
	frameHeader = 8
	endLen      = 20   // work, units, bytes
	abortMax    = 1024 // maximum length of the reason
	readBuffer  = 32 << 10
)

// putHeader writes the header of a frame with n bytes of payload.
func putHeader(b []byte, k kind, n int) {
	b[0], b[1], b[2], b[3] = frameMagic, byte(k), 0, 0
	binary.BigEndian.PutUint32(b[4:], uint32(n))
}

func appendFrame(b []byte, k kind, payload []byte) []byte {
	b = append(b, make([]byte, frameHeader)...)
	putHeader(b[len(b)-frameHeader:], k, len(payload))
	return append(b, payload...)
}

// parseHeader returns the kind and payload length of a frame. It rejects an invalid length before the payload
// is read.
func parseHeader(b []byte, unitSize int) (kind, int, error) {
	k, n := kind(b[1]), binary.BigEndian.Uint32(b[4:])
	if b[0] != frameMagic || b[2] != 0 || b[3] != 0 {
		return 0, 0, fmt.Errorf("%w: invalid header % x", ErrFrame, b[:frameHeader])
	}
	lowest, highest := 0, 0
	switch k {
	case kindHello:
		lowest, highest = helloLen, helloLen
	case kindUnit:
		highest = unitSize
	case kindEnd:
		lowest, highest = endLen, endLen
	case kindAbort:
		highest = abortMax
	case kindWelcome, kindAck, kindBye:
	default:
		return 0, 0, fmt.Errorf("%w: unknown %v", ErrFrame, k)
	}
	if int64(n) < int64(lowest) || int64(n) > int64(highest) {
		return 0, 0, fmt.Errorf("%w: %v of %d bytes, want %d to %d", ErrFrame, k, n, lowest, highest)
	}
	return k, int(n), nil
}

// frame is a frame in the buffer of its reader, valid until the next read.
type frame struct {
	kind    kind
	payload []byte
}

// frameReader reads frames from a connection without copying payloads.
type frameReader struct {
	from     *bufio.Reader
	unitSize int
	consumed int // length of the last frame, which is still in the buffer
}

// newFrameReader returns a reader of frames with units of up to unitSize bytes, or without units if unitSize
// is 0.
func newFrameReader(from io.Reader, unitSize int) *frameReader {
	size := frameHeader + max(unitSize, abortMax)
	if unitSize > 0 {
		size = max(size, readBuffer)
	}
	return &frameReader{from: bufio.NewReaderSize(from, size), unitSize: unitSize}
}

// nextFrame returns the next frame, and invalidates the previous one. The error is io.EOF between frames and
// io.ErrUnexpectedEOF within a frame.
func (r *frameReader) nextFrame() (frame, error) {
	if r.consumed > 0 {
		if _, err := r.from.Discard(r.consumed); err != nil {
			return frame{}, err
		}
		r.consumed = 0
	}
	b, err := r.from.Peek(frameHeader)
	if err != nil {
		return frame{}, truncatedError(err, len(b))
	}
	k, n, err := parseHeader(b, r.unitSize)
	if err != nil {
		return frame{}, err
	}
	b, err = r.from.Peek(frameHeader + n)
	if err != nil {
		return frame{}, truncatedError(err, len(b))
	}
	r.consumed = len(b)
	return frame{k, b[frameHeader:]}, nil
}

// truncatedError returns the error of a read that ended after n bytes of a frame.
func truncatedError(err error, n int) error {
	if n > 0 && errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Counts are numbers of units and of their bytes, without headers.
type Counts struct {
	Units, Bytes uint64
}

func (c *Counts) addUnit(unit []byte) {
	c.Units++
	c.Bytes += uint64(len(unit))
}

// appendEnd appends the end of a work with the counts c of this connection.
func appendEnd(b []byte, work int, c Counts) []byte {
	b = append(b, make([]byte, frameHeader)...)
	putHeader(b[len(b)-frameHeader:], kindEnd, endLen)
	b = binary.BigEndian.AppendUint32(b, uint32(work))
	b = binary.BigEndian.AppendUint64(b, c.Units)
	return binary.BigEndian.AppendUint64(b, c.Bytes)
}

// checkEnd compares the producer's counts with those received.
func checkEnd(payload []byte, work int, got Counts) error {
	n := binary.BigEndian.Uint32(payload)
	sent := Counts{binary.BigEndian.Uint64(payload[4:]), binary.BigEndian.Uint64(payload[12:])}
	if n != uint32(work) || sent != got {
		return fmt.Errorf("%w: end of work %d after %d units of %d bytes, want work %d after %d of %d bytes",
			ErrFrame, n, sent.Units, sent.Bytes, work, got.Units, got.Bytes)
	}
	return nil
}
