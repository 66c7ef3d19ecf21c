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

// Put writes the header to the first HeaderLen bytes of b.
func (h Header) Put(b []byte) {
	b = b[:HeaderLen]
	b[0], b[1], b[2], b[3] = baseVersion, classCM, classVersion, methodSend
	binary.BigEndian.PutUint32(b[4:], 0)
	binary.BigEndian.PutUint64(b[8:], h.TID)
	binary.BigEndian.PutUint16(b[16:], uint16(h.Attr))
	binary.BigEndian.PutUint16(b[18:], h.UDPPort)
	binary.BigEndian.PutUint32(b[20:], h.Modifier)
}

// Parse reads the header of a datagram and returns its body of BodyLen bytes,
// a view of b. If the reason is not DropNone, b is not a CM message and the other
// results are invalid.
func Parse(b []byte) (h Header, body []byte, drop Drop) {
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
	if h.Attr < AttrREQ || h.Attr > AttrAPR {
		return h, nil, DropUnknownAttr
	}
	return h, b[HeaderLen:], DropNone
}

// Message is the body of a datagram.
type Message interface {
	// Put writes the body to the first BodyLen bytes of b. Private data that
	// is longer than its field is cut off; fields of a few bits are, too.
	Put(b []byte)
}

// Put writes a complete datagram.
func Put(b *[Size]byte, h Header, m Message) {
	h.Put(b[:])
	m.Put(b[HeaderLen:])
}
