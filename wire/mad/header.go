package mad

import (
	"encoding/binary"
	"strconv"
)

// Lengths in bytes.
const (
	Size      = 256 // of every datagram
	HeaderLen = 24
	BodyLen   = Size - HeaderLen
)

// Constant fields of the header of CM messages.
const (
	baseVersion  = 1
	classCM      = 0x07
	classVersion = 2
	methodSend   = 0x03
)

// An Attr is the type of a CM message.
type Attr uint16

// Messages.
const (
	AttrREQ Attr = 0x10 + iota
	AttrMRA
	AttrREJ
	AttrREP
	AttrRTU
	AttrDREQ
	AttrDREP
	AttrSIDRReq
	AttrSIDRRep
	AttrLAP
	AttrAPR
)

var attrNames = [...]string{"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"}

// String returns the name of the message, for example "REQ".
func (a Attr) String() string {
	if a >= AttrREQ && a <= AttrAPR {
		return attrNames[a-AttrREQ]
	}
	return "attribute 0x" + strconv.FormatUint(uint64(a), 16)
}

// Header has the fields of the header that differ between CM messages.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+---------------+---------------+
//	| base version 1| class 0x07    | class vers. 2 | method 0x03   |
//	+---------------+---------------+---------------+---------------+
//	|            status             |        class specific         |
//	+-------------------------------+-------------------------------+
//	|                        transaction id                         |
//	|                                                               |
//	+-------------------------------+-------------------------------+
//	|         attribute id          |           reserved            |
//	+-------------------------------+-------------------------------+
//	|                      attribute modifier                       |
//	+---------------------------------------------------------------+
type Header struct {
	TID  uint64 // transaction ID: a reply carries that of its request
	Attr Attr

	// UDPPort is the UDP port of the sender's adapter, 0 for 4791. Only
	// softrnic uses other ports. The field is a reserved half-word that other
	// implementations send as 0 and ignore.
	UDPPort uint16

	Modifier uint32 // REQ and REP: options of enhanced connection establishment, 0
}

// putHeader writes the header to the first HeaderLen bytes of b.
func (h Header) putHeader(b []byte) {
	b = b[:HeaderLen]
	b[0], b[1], b[2], b[3] = baseVersion, classCM, classVersion, methodSend
	binary.BigEndian.PutUint32(b[4:], 0)
	binary.BigEndian.PutUint64(b[8:], h.TID)
	binary.BigEndian.PutUint16(b[16:], uint16(h.Attr))
	binary.BigEndian.PutUint16(b[18:], h.UDPPort)
	binary.BigEndian.PutUint32(b[20:], h.Modifier)
}

// Parse decodes a datagram. The message has the type that h.Attr names, such as *REQ. Its private
// data is a view of b, including trailing zeros of the field. If the reason is not DropNone, b is
// not a CM message and the other results are invalid.
func Parse(b []byte) (h Header, m Message, drop Drop) {
	switch {
	case len(b) != Size:
		return h, nil, DropBadSize
	case b[0] != baseVersion:
		return h, nil, DropBadVersion
	case b[1] != classCM:
		return h, nil, DropOtherClass
	case b[2] != classVersion:
		return h, nil, DropBadClassVersion
	case b[3] != methodSend:
		return h, nil, DropBadMethod
	}
	h.TID = binary.BigEndian.Uint64(b[8:])
	h.Attr = Attr(binary.BigEndian.Uint16(b[16:]))
	h.UDPPort = binary.BigEndian.Uint16(b[18:])
	h.Modifier = binary.BigEndian.Uint32(b[20:])
	if m = newMessage(h.Attr); m == nil {
		return h, nil, DropUnknownAttr
	}
	m.parseBody(b[HeaderLen:])
	return h, m, DropNone
}

// A Message is the body of a datagram: *REQ, *MRA, *REJ, *REP, *RTU, *DREQ, *DREP, *SIDRReq,
// *SIDRRep, *LAP or *APR.
type Message interface {
	putBody(b []byte)   // writes the body to the first BodyLen bytes of b
	parseBody(b []byte) // reads the body from the first BodyLen bytes of b
}

// newMessage returns an empty message of a type, or nil for an unknown one.
func newMessage(a Attr) Message {
	switch a {
	case AttrREQ:
		return new(REQ)
	case AttrMRA:
		return new(MRA)
	case AttrREJ:
		return new(REJ)
	case AttrREP:
		return new(REP)
	case AttrRTU:
		return new(RTU)
	case AttrDREQ:
		return new(DREQ)
	case AttrDREP:
		return new(DREP)
	case AttrSIDRReq:
		return new(SIDRReq)
	case AttrSIDRRep:
		return new(SIDRRep)
	case AttrLAP:
		return new(LAP)
	case AttrAPR:
		return new(APR)
	}
	return nil
}

// Put writes a complete datagram. Private data that is longer than its field is cut off, and so
// are fields of a few bits.
func Put(b *[Size]byte, h Header, m Message) {
	h.putHeader(b[:])
	m.putBody(b[HeaderLen:])
}

// A Drop is the reason why Parse rejects a datagram.
type Drop uint8

// Reasons.
const (
	DropNone            Drop = iota // the datagram is a message of the communication manager
	DropBadSize                     // not 256 bytes
	DropBadVersion                  // unsupported base version
	DropOtherClass                  // another management class
	DropBadClassVersion             // unsupported class version
	DropBadMethod                   // the method is not Send
	DropUnknownAttr                 // unknown attribute
	NumDrops                        // number of reasons, DropNone included
)

var dropNames = [NumDrops]string{
	"none", "bad_size", "bad_version", "other_class", "bad_class_version", "bad_method", "unknown_attribute",
}

// String returns the name of the reason in snake case, as in counters.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "drop_" + strconv.Itoa(int(d))
}

// timeoutUnit is the unit of 5-bit timeout codes in nanoseconds: 4.096 us.
const timeoutUnit = 4096

// TimeoutNanos returns the time in nanoseconds of a 5-bit timeout code: 4.096 us *
// 2^code.
func TimeoutNanos(code uint8) int64 { return timeoutUnit << (code & 31) }

// TimeoutCode returns the smallest timeout code of at least ns nanoseconds, 31 if
// there is none.
func TimeoutCode(ns int64) uint8 {
	code := uint8(0)
	for code < 31 && TimeoutNanos(code) < ns {
		code++
	}
	return code
}
