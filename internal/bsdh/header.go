package bsdh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// Flags of a message.
type Flags uint8

// Flags. The others are 0.
const (
	OOBPresent  Flags = 1 << iota // the last byte of the payload is urgent
	OOBPending                    // an urgent byte follows
	RequestPipe                   // the sender requests pipelined mode
)

// String returns the SDP names of the flags, for example "OOB_PRES|REQ_PIPE", or
// "none".
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

// Header is the Base Sockets Direct Header (BSDH), the first header of every
// message.
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
	Bufs  uint16 // receives that the sender has posted, as of Ack
	Len   uint32 // of the whole message in bytes, the headers included
	Seq   uint32 // sequence number: 0 for Hello and HelloAck, then increasing by one
	Ack   uint32 // Seq of the last message that the sender has received
}

// Append appends the base header to b.
func (h Header) Append(b []byte) []byte {
	b = append(b, byte(h.MID), byte(h.Flags), byte(h.Bufs>>8), byte(h.Bufs))
	b = binary.BigEndian.AppendUint32(b, h.Len)
	b = binary.BigEndian.AppendUint32(b, h.Seq)
	return binary.BigEndian.AppendUint32(b, h.Ack)
}

// parseHeader decodes a base header without checks.
func parseHeader(b *[HeaderBytes]byte) Header {
	return Header{
		MID: MID(b[0]), Flags: Flags(b[1]), Bufs: binary.BigEndian.Uint16(b[2:]),
		Len: binary.BigEndian.Uint32(b[4:]), Seq: binary.BigEndian.Uint32(b[8:]), Ack: binary.BigEndian.Uint32(b[12:]),
	}
}

// ParseHeader decodes the base header of the message b, which may be followed by
// other bytes. It returns an error if Len exceeds b or is less than the headers, so
// that the extended header and the payload are complete if it succeeds. It does not
// check whether the peer may send the message.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderBytes {
		return Header{}, malformedError("%d bytes arrived, the base header alone takes %d", len(b), HeaderBytes)
	}
	h := parseHeader((*[HeaderBytes]byte)(b))
	least := HeaderBytes + h.MID.Extended()
	if uint64(h.Len) < uint64(least) {
		return Header{}, malformedError("%v of length %d: headers alone take %d bytes", h.MID, h.Len, least)
	}
	if uint64(h.Len) > uint64(len(b)) {
		return Header{}, malformedError("%v of length %d: %d bytes received", h.MID, h.Len, len(b))
	}
	return h, nil
}

// Payload returns the payload of b, the message that h was parsed from, as a view of
// b.
func (h Header) Payload(b []byte) []byte {
	start := HeaderBytes + h.MID.Extended()
	if uint64(h.Len) > uint64(len(b)) || uint64(h.Len) < uint64(start) {
		return nil
	}
	return b[start:h.Len]
}

// An ExtendedHeader is a header that follows the base header in messages of one or two MIDs.
type ExtendedHeader interface {
	SrcAvail | SinkAvail | RdmaCompl | ChRcvBuf | SuspComm | ModeChange | RingUpdate | RingChange
}

// ParseExtended decodes an extended header from b, which begins behind the base header. It returns
// an error if b is too short, and for a ModeChange to an unknown mode.
func ParseExtended[E ExtendedHeader](b []byte) (e E, err error) {
	switch e := any(&e).(type) {
	case *SrcAvail:
		*e, err = parseSrcAvail(b)
	case *SinkAvail:
		*e, err = parseSinkAvail(b)
	case *RdmaCompl:
		*e, err = parseRdmaCompl(b)
	case *ChRcvBuf:
		*e, err = parseChRcvBuf(b)
	case *SuspComm:
		*e, err = parseSuspComm(b)
	case *ModeChange:
		*e, err = parseModeChange(b)
	case *RingUpdate:
		*e, err = parseRingUpdate(b)
	case *RingChange:
		*e, err = parseRingChange(b)
	}
	return e, err
}

// ErrMalformed is wrapped by all errors of this package: the bytes are not an SDP
// message, or their length fields are inconsistent.
var ErrMalformed = errors.New("bsdh: malformed SDP message")

func malformedError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// checkLength returns an error if an extended header is truncated.
func checkLength(b []byte, name string, bytes int) error {
	if len(b) < bytes {
		return malformedError("the extended header of %s takes %d bytes, %d are there", name, bytes, len(b))
	}
	return nil
}

// servicePrefix has the bits of SDP service IDs above the port.
const servicePrefix = 0x0000000000010000

// ServiceID returns the connection management service ID of the socket that listens
// on a port.
func ServiceID(port uint16) uint64 { return servicePrefix | uint64(port) }

// Port returns the port of an SDP service ID. It reports false for other service
// IDs.
func Port(serviceID uint64) (port uint16, ok bool) {
	return uint16(serviceID), serviceID&^0xFFFF == servicePrefix
}
