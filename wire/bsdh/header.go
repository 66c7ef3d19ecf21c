package bsdh

import (
	"encoding/binary"
	"strconv"
)

// Flags of a message.
type Flags uint8

// Flags. The others are 0.
const (
	OOBPresent  Flags = 1 << iota // the last byte of the payload is urgent
	OOBPending                    // an urgent byte is on its way
	RequestPipe                   // the sender would like pipelined mode
)

// String names the flags as SDP does, for example "OOB_PRES|REQ_PIPE"; "none" if
// there are none.
func (f Flags) String() string {
	if f == 0 {
		return "none"
	}
	s := ""
	for i, name := range [...]string{"OOB_PRES", "OOB_PEND", "REQ_PIPE"} {
		if f&(1<<i) != 0 {
			s += "|" + name
		}
	}
	if rest := f &^ (OOBPresent | OOBPending | RequestPipe); rest != 0 {
		s += "|0x" + strconv.FormatUint(uint64(rest), 16)
	}
	return s[1:]
}

// Header is the Base Sockets Direct Header (BSDH), with which every message
// begins.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+---------------+---------------+
//	|      MID      |     flags     |             bufs              |
//	+---------------+---------------+---------------+---------------+
//	|                              len                              |
//	+---------------------------------------------------------------+
//	|                             mseq                              |
//	+---------------------------------------------------------------+
//	|                           mseq_ack                            |
//	+---------------------------------------------------------------+
type Header struct {
	MID   MID
	Flags Flags
	Bufs  uint16 // receives that the sender has posted; to be read together with Ack
	Len   uint32 // of the whole message in bytes, the headers included
	Seq   uint32 // number of the message; Hello and HelloAck are 0, each that follows is one more
	Ack   uint32 // Seq of the last message that the sender has received
}

// Append appends the base header to b.
func (h Header) Append(b []byte) []byte {
	b = append(b, byte(h.MID), byte(h.Flags), byte(h.Bufs>>8), byte(h.Bufs))
	b = binary.BigEndian.AppendUint32(b, h.Len)
	b = binary.BigEndian.AppendUint32(b, h.Seq)
	return binary.BigEndian.AppendUint32(b, h.Ack)
}

// parseHeader reads a base header without judging it.
func parseHeader(b *[HeaderBytes]byte) Header {
	return Header{
		MID: MID(b[0]), Flags: Flags(b[1]), Bufs: binary.BigEndian.Uint16(b[2:]),
		Len: binary.BigEndian.Uint32(b[4:]), Seq: binary.BigEndian.Uint32(b[8:]), Ack: binary.BigEndian.Uint32(b[12:]),
	}
}

// ParseHeader reads the base header of the message b, which may be followed by
// other bytes. It is an error if the message says that it is longer than b, or
// shorter than its headers: after ParseHeader the extended header is there, and
// so is the payload. Whether MID is one that the peer may send is not looked at.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderBytes {
		return Header{}, malformedError("%d bytes arrived, the base header alone takes %d", len(b), HeaderBytes)
	}
	h := parseHeader((*[HeaderBytes]byte)(b))
	least := HeaderBytes + h.MID.Extended()
	if uint64(h.Len) < uint64(least) {
		return Header{}, malformedError("%v says that it is %d bytes long, its headers alone take %d", h.MID, h.Len, least)
	}
	if uint64(h.Len) > uint64(len(b)) {
		return Header{}, malformedError("%v says that it is %d bytes long, %d arrived", h.MID, h.Len, len(b))
	}
	return h, nil
}

// Payload is the payload of b, the message that h was parsed from: a view, empty
// if there is none.
func (h Header) Payload(b []byte) []byte {
	start := HeaderBytes + h.MID.Extended()
	if uint64(h.Len) > uint64(len(b)) || uint64(h.Len) < uint64(start) {
		return nil
	}
	return b[start:h.Len]
}
