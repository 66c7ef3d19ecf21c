package rping

import (
	"encoding/binary"
	"fmt"
)

// An Info is the message of rping: the address of a buffer.
type Info struct {
	Addr uint64
	RKey uint32
	Size uint32 // bytes
}

// InfoLen is the length of an Info as a message.
const InfoLen = 16

// Append appends the message in network byte order.
func (i Info) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, i.Addr)
	b = binary.BigEndian.AppendUint32(b, i.RKey)
	return binary.BigEndian.AppendUint32(b, i.Size)
}

// ParseInfo parses the result of Append.
func ParseInfo(b []byte) (Info, error) {
	if len(b) != InfoLen {
		return Info{}, fmt.Errorf("received bogus data, size %d: want %d bytes", len(b), InfoLen)
	}
	return Info{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}, nil
}
