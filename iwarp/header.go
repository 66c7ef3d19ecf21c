package iwarp

import "encoding/binary"

// Bits of the first two bytes of a segment.
const (
	ddpTagged    = 0x80
	ddpLast      = 0x40
	ddpVersion   = 1 // bits 1 to 0
	rdmapVersion = 1 // bits 7 to 6
)

// A Header is the header of a DDP segment with that of RDMAP (RFC 5041, section 4; RFC 5040,
// section 4).
type Header struct {
	Opcode Opcode
	Last   bool // last segment of its message

	// Tagged segments:
	STag   uint32
	Offset uint64 // tagged offset: address of the payload

	// Untagged segments:
	Key     uint32 // key to invalidate, or immediate data of an extension; otherwise 0
	Queue   uint32
	MSN     uint32 // number of the message in its queue, from 1
	Message uint32 // offset of the payload in the message
}

// Len returns the length of the header in bytes.
func (h *Header) Len() int {
	if h.Opcode.IsTagged() {
		return TaggedLen
	}
	return UntaggedLen
}

// Put writes the header to b.
func (h *Header) Put(b []byte) {
	b[0], b[1] = ddpVersion, rdmapVersion<<6|byte(h.Opcode)
	if h.Last {
		b[0] |= ddpLast
	}
	if h.Opcode.IsTagged() {
		b[0] |= ddpTagged
		binary.BigEndian.PutUint32(b[2:], h.STag)
		binary.BigEndian.PutUint64(b[6:], h.Offset)
		return
	}
	binary.BigEndian.PutUint32(b[2:], h.Key)
	binary.BigEndian.PutUint32(b[6:], h.Queue)
	binary.BigEndian.PutUint32(b[10:], h.MSN)
	binary.BigEndian.PutUint32(b[14:], h.Message)
}

// HeaderLen returns the length of the header of a segment that begins with the byte first.
func HeaderLen(first byte) int {
	if first&ddpTagged != 0 {
		return TaggedLen
	}
	return UntaggedLen
}

// ParseHeader parses the header of the segment b, which has at least HeaderLen bytes. The code is
// that of the Terminate with which an invalid one is answered; its layer is meaningful.
func ParseHeader(b []byte) (h Header, bad Code) {
	tagged := b[0]&ddpTagged != 0
	h.Opcode, h.Last = Opcode(b[1]&15), b[0]&ddpLast != 0
	if tagged {
		h.STag, h.Offset = binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint64(b[6:])
	} else {
		h.Key, h.Queue = binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint32(b[6:])
		h.MSN, h.Message = binary.BigEndian.Uint32(b[10:]), binary.BigEndian.Uint32(b[14:])
	}
	switch {
	case b[0]&3 != ddpVersion && tagged:
		return h, TaggedVersion
	case b[0]&3 != ddpVersion:
		return h, UntaggedVersion
	case !tagged && h.Queue >= Queues:
		return h, InvalidQueue
	case b[1]>>6 != rdmapVersion:
		return h, RDMAPVersion
	case !h.Opcode.IsDefined() || h.Opcode.IsTagged() != tagged:
		return h, UnexpectedOpcode
	case !tagged && h.Queue != h.Opcode.Queue():
		return h, UnexpectedOpcode
	}
	return h, CodeNone
}

// A ReadRequest is the payload of OpReadRequest (RFC 5040, section 4.4).
type ReadRequest struct {
	SinkSTag     uint32 // to which the response is tagged
	SinkOffset   uint64
	Length       uint32
	SourceSTag   uint32
	SourceOffset uint64
}

// ReadRequestLen is the length of a ReadRequest in bytes.
const ReadRequestLen = 28

// Put writes the request to b.
func (r *ReadRequest) Put(b []byte) {
	binary.BigEndian.PutUint32(b, r.SinkSTag)
	binary.BigEndian.PutUint64(b[4:], r.SinkOffset)
	binary.BigEndian.PutUint32(b[12:], r.Length)
	binary.BigEndian.PutUint32(b[16:], r.SourceSTag)
	binary.BigEndian.PutUint64(b[20:], r.SourceOffset)
}

// ParseReadRequest parses ReadRequestLen bytes.
func ParseReadRequest(b []byte) ReadRequest {
	return ReadRequest{
		SinkSTag: binary.BigEndian.Uint32(b), SinkOffset: binary.BigEndian.Uint64(b[4:]), Length: binary.BigEndian.Uint32(b[12:]),
		SourceSTag: binary.BigEndian.Uint32(b[16:]), SourceOffset: binary.BigEndian.Uint64(b[20:]),
	}
}

// An AtomicOp is the operation of an AtomicRequest (RFC 7306, section 4.2).
type AtomicOp uint8

// The operations.
const (
	FetchAdd AtomicOp = 0
	CmpSwap  AtomicOp = 2
)

// An AtomicRequest is the payload of OpAtomicRequest. The masks of the standard are all ones: an
// addition of one number of 64 bits, and a comparison and a swap of whole words.
type AtomicRequest struct {
	Op      AtomicOp
	ID      uint32 // returned in the response
	STag    uint32
	Offset  uint64
	Data    uint64 // addend, or new value
	Compare uint64
}

// AtomicRequestLen and AtomicResponseLen are lengths in bytes.
const (
	AtomicRequestLen  = 52
	AtomicResponseLen = 12
)

// Put writes the request to b. The addend's mask is 0: no carry is suppressed.
func (r *AtomicRequest) Put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(r.Op))
	binary.BigEndian.PutUint32(b[4:], r.ID)
	binary.BigEndian.PutUint32(b[8:], r.STag)
	binary.BigEndian.PutUint64(b[12:], r.Offset)
	binary.BigEndian.PutUint64(b[20:], r.Data)
	binary.BigEndian.PutUint64(b[28:], r.mask())
	binary.BigEndian.PutUint64(b[36:], r.Compare)
	binary.BigEndian.PutUint64(b[44:], r.mask())
}

func (r *AtomicRequest) mask() uint64 {
	if r.Op == CmpSwap {
		return 1<<64 - 1
	}
	return 0
}

// ParseAtomicRequest parses AtomicRequestLen bytes. It reports false for operations and masks that
// this package does not have.
func ParseAtomicRequest(b []byte) (r AtomicRequest, ok bool) {
	r = AtomicRequest{
		Op: AtomicOp(b[3] & 15), ID: binary.BigEndian.Uint32(b[4:]), STag: binary.BigEndian.Uint32(b[8:]), Offset: binary.BigEndian.Uint64(b[12:]),
		Data: binary.BigEndian.Uint64(b[20:]), Compare: binary.BigEndian.Uint64(b[36:]),
	}
	known := r.Op == FetchAdd || r.Op == CmpSwap
	whole := binary.BigEndian.Uint64(b[28:]) == r.mask() && (r.Op == FetchAdd || binary.BigEndian.Uint64(b[44:]) == r.mask())
	return r, known && whole
}

// PutAtomicResponse writes the response to the request id, with the value before the operation.
func PutAtomicResponse(b []byte, id uint32, value uint64) {
	binary.BigEndian.PutUint32(b, id)
	binary.BigEndian.PutUint64(b[4:], value)
}

// ParseAtomicResponse parses AtomicResponseLen bytes.
func ParseAtomicResponse(b []byte) (id uint32, value uint64) {
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])
}

// ImmediateLen is the length of the payload of OpImmediate.
const ImmediateLen = 8

// PutImmediate writes the immediate data behind a WRITE of length bytes.
func PutImmediate(b []byte, length, imm uint32) {
	binary.BigEndian.PutUint32(b, length)
	binary.BigEndian.PutUint32(b[4:], imm)
}

// ParseImmediate parses ImmediateLen bytes.
func ParseImmediate(b []byte) (length, imm uint32) {
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
}
