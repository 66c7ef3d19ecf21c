package datacutter

import (
	"encoding/binary"
	"fmt"
	"math"
)

// helloLen is the length of a hello's payload in bytes.
const helloLen = digestLen + 4*4

// hello is the first frame of a stream's producer. The digest of the job ensures that both hosts number
// streams and copies alike.
type hello struct {
	digest digest
	slot
}

// slot identifies a connection: the stream, the instance of the group, and the copies at its ends.
type slot struct {
	stream, group, from, to int
}

func (h hello) appendTo(b []byte) []byte {
	b = append(b, make([]byte, frameHeader)...)
	putHeader(b[len(b)-frameHeader:], kindHello, helloLen)
	b = append(b, h.digest[:]...)
	for _, n := range []int{h.stream, h.group, h.from, h.to} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// parseHello decodes a hello frame.
func parseHello(b []byte) (h hello, err error) {
	k, _, err := parseHeader(b, 0)
	if err != nil {
		return h, err
	}
	if k != kindHello {
		return h, fmt.Errorf("%w: got %v, want hello", ErrFrame, k)
	}
	b = b[frameHeader:]
	copy(h.digest[:], b)
	b = b[digestLen:]
	for i, p := range []*int{&h.stream, &h.group, &h.from, &h.to} {
		n := binary.BigEndian.Uint32(b[4*i:])
		if n > math.MaxInt32 {
			return h, fmt.Errorf("%w: hello: number %d out of range", ErrFrame, n)
		}
		*p = int(n)
	}
	return h, nil
}
