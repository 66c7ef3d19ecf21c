package iwarp

import (
	"encoding/binary"
	"fmt"
)

// A Code is the reason of a Terminate: layer, error type and error code (RFC 5040, section 4.8; RFC
// 6581, section 8), as 0xLTCC.
type Code uint16

// The codes. CodeNone stands for no error.
const (
	CodeNone          Code = 0xffff
	RDMAPCatastrophic Code = 0x0000
	InvalidSTag       Code = 0x0100 // of the source of a READ or the target of an atomic
	BaseBounds        Code = 0x0101
	AccessRights      Code = 0x0102
	STagNotAssociated Code = 0x0103 // of another protection domain
	OffsetWrap        Code = 0x0104
	CannotInvalidate  Code = 0x0109
	RDMAPVersion      Code = 0x0205
	UnexpectedOpcode  Code = 0x0206
	StreamError       Code = 0x0207 // catastrophic, local to this connection
	DDPCatastrophic   Code = 0x1000
	TaggedInvalidSTag Code = 0x1100 // of a WRITE or a READ response
	TaggedBaseBounds  Code = 0x1101
	TaggedNotAssoc    Code = 0x1102
	TaggedOffsetWrap  Code = 0x1103
	TaggedVersion     Code = 0x1104
	InvalidQueue      Code = 0x1201
	NoBuffer          Code = 0x1202 // no receive is posted, or too many READs
	MSNOutOfRange     Code = 0x1203
	InvalidOffset     Code = 0x1204
	MessageTooLong    Code = 0x1205 // for the receive
	UntaggedVersion   Code = 0x1206
	StreamLost        Code = 0x2001
	CRCMismatch       Code = 0x2002
	FrameMismatch     Code = 0x2003
	InvalidHandshake  Code = 0x2004
	MPACatastrophic   Code = 0x2005
	TooFewReads       Code = 0x2006
	NoMatchingRTR     Code = 0x2007
)

var codeTexts = map[Code]string{
	RDMAPCatastrophic: "local catastrophic error of RDMAP",
	InvalidSTag:       "invalid key",
	BaseBounds:        "range outside the region",
	AccessRights:      "permission not granted",
	STagNotAssociated: "key of another protection domain",
	OffsetWrap:        "address wraps around",
	CannotInvalidate:  "key cannot be invalidated",
	RDMAPVersion:      "version of RDMAP",
	UnexpectedOpcode:  "unexpected opcode",
	StreamError:       "catastrophic error of the connection",
	DDPCatastrophic:   "local catastrophic error of DDP",
	TaggedInvalidSTag: "invalid key of a write or read response",
	TaggedBaseBounds:  "write or read response outside the region",
	TaggedNotAssoc:    "key of a write or read response of another protection domain",
	TaggedOffsetWrap:  "address of a write or read response wraps around",
	TaggedVersion:     "version of DDP in a tagged segment",
	InvalidQueue:      "invalid queue number",
	NoBuffer:          "no receive is posted, or too many reads at a time",
	MSNOutOfRange:     "message sequence number out of range",
	InvalidOffset:     "invalid message offset",
	MessageTooLong:    "message too long for the receive",
	UntaggedVersion:   "version of DDP in an untagged segment",
	StreamLost:        "TCP connection lost",
	CRCMismatch:       "CRC error",
	FrameMismatch:     "markers and lengths do not fit",
	InvalidHandshake:  "invalid request or reply of the set-up",
	MPACatastrophic:   "local catastrophic error of MPA",
	TooFewReads:       "too few reads at a time",
	NoMatchingRTR:     "no common ready-to-receive indication",
}

// String returns the layer, type and code with their meaning, for example "0x1202 (no receive ...)".
func (c Code) String() string {
	if text, ok := codeTexts[c]; ok {
		return fmt.Sprintf("%#04x (%s)", uint16(c), text)
	}
	return fmt.Sprintf("%#04x", uint16(c))
}

// A Terminate is the payload of OpTerminate: the reason, with the header of the segment that caused
// it and, for a READ, its request.
type Terminate struct {
	Code    Code
	Length  uint16 // of the segment, if Segment is there
	Segment []byte // header of the segment, or nil
	Request []byte // ReadRequestLen bytes, or nil
}

// Bits of the third byte of a Terminate: the parts that follow.
const (
	hasLength  = 0x80
	hasSegment = 0x40
	hasRequest = 0x20
)

// terminateLen is the length of the fixed part of a Terminate.
const terminateLen = 4

// MaxTerminateLen is the maximum length of a Terminate.
const MaxTerminateLen = terminateLen + 2 + UntaggedLen + ReadRequestLen

// AppendTo appends the payload to b.
func (t *Terminate) AppendTo(b []byte) []byte {
	var has byte
	if t.Segment != nil {
		has |= hasLength | hasSegment
	}
	if t.Request != nil {
		has |= hasRequest
	}
	b = append(b, byte(t.Code>>8), byte(t.Code), has, 0)
	if t.Segment != nil {
		b = append(binary.BigEndian.AppendUint16(b, t.Length), t.Segment...)
	}
	return append(b, t.Request...)
}

// ParseTerminate parses a payload, also that of Linux's siw, which swaps layer and type and mirrors
// the bits of the parts, unless the bytes mean something without that: its 0x2006 stays TooFewReads.
// The slices refer to b.
func ParseTerminate(b []byte) (t Terminate, ok bool) {
	if len(b) < terminateLen {
		return t, false
	}
	first, has := b[0], b[2]
	t.Code = Code(first)<<8 | Code(b[1])
	swapped := Code(first<<4|first>>4)<<8 | Code(b[1])
	_, known := codeTexts[t.Code]
	if _, knownSwapped := codeTexts[swapped]; has&0xe0 == 0 && has&7 != 0 || !known && knownSwapped {
		t.Code = swapped
		has = has&1<<7 | has&2<<5 | has&4<<3
	}
	b = b[terminateLen:]
	if has&(hasLength|hasSegment) == hasLength|hasSegment {
		if len(b) < 3 || len(b) < 2+HeaderLen(b[2]) {
			return t, true
		}
		t.Length = binary.BigEndian.Uint16(b)
		n := 2 + HeaderLen(b[2])
		t.Segment, b = b[2:n], b[n:]
	}
	if has&hasRequest != 0 && len(b) >= ReadRequestLen {
		t.Request = b[:ReadRequestLen]
	}
	return t, true
}
