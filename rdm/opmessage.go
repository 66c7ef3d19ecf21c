package rdm

import "encoding/binary"

// Messages of emulated operations. Each fits in one datagram: read data and writes
// are fragmented.
//
//	 0     1        2     4     8      12     16       24      32      40
//	+-----+--------+-----+-----+------+------+--------+-------+-------+
//	| tag | status | 0   | id  | RKey | n    | addr   | a     | b     |
//	+-----+--------+-----+-----+------+------+--------+-------+-------+
//
//	READ     requests n bytes at addr with RKey
//	DATA     fragment of read data after 24 bytes of header; addr is its offset
//	WRITE    fragment for addr after 24 bytes of header; status 1: last fragment
//	SWAP     compare with a, swap in b
//	ADD      add a
//	END      completes WRITE, SWAP, ADD and a failed READ: the status, and in a
//	         the original value of an atomic
const (
	tagRead  = 'R'
	tagData  = 'D'
	tagWrite = 'W'
	tagSwap  = 'C'
	tagAdd   = 'A'
	tagEnd   = 'E'

	shortSize = 24 // without operands
	headSize  = 40
)

// A status is the result of an operation.
type status uint8

const (
	statusOK status = iota
	statusKey
	statusBounds
	statusAccess
	statusDenied
	statusAlign
	statusFault
	statuses
)

func (s status) toError() error {
	if s >= statuses {
		return ErrProtocol
	}
	return [statuses]error{nil, ErrKey, ErrBounds, ErrAccess, ErrDenied, ErrAlign, ErrFault}[s]
}

// An opMessage is a message of an emulated operation.
type opMessage struct {
	tag    byte
	status status
	id     uint32
	rkey   uint32
	n      uint32
	addr   uint64
	a, b   uint64
}

// hasOperands reports whether messages with the tag have operands.
func hasOperands(tag byte) bool {
	return tag == tagSwap || tag == tagAdd || tag == tagEnd || tag == tagToken
}

// encode writes the header of a message to b and returns its length.
func (r *opMessage) encode(b *[headSize]byte) int {
	be := binary.BigEndian
	b[0], b[1], b[2], b[3] = r.tag, byte(r.status), 0, 0
	be.PutUint32(b[4:], r.id)
	be.PutUint32(b[8:], r.rkey)
	be.PutUint32(b[12:], r.n)
	be.PutUint64(b[16:], r.addr)
	if !hasOperands(r.tag) {
		return shortSize
	}
	be.PutUint64(b[24:], r.a)
	be.PutUint64(b[32:], r.b)
	return headSize
}

// decode parses a message and returns the payload.
func (r *opMessage) decode(b []byte) (payload []byte, ok bool) {
	if len(b) < shortSize || b[2] != 0 || b[3] != 0 {
		return nil, false
	}
	be := binary.BigEndian
	*r = opMessage{tag: b[0], status: status(b[1]), id: be.Uint32(b[4:]), rkey: be.Uint32(b[8:]), n: be.Uint32(b[12:]), addr: be.Uint64(b[16:])}
	switch {
	case hasOperands(r.tag):
		if len(b) != headSize {
			return nil, false
		}
		r.a, r.b = be.Uint64(b[24:]), be.Uint64(b[32:])
		return nil, true
	case r.tag == tagRead:
		return nil, len(b) == shortSize && r.n <= maxLength
	case r.tag == tagData, r.tag == tagWrite:
		return b[shortSize:], int(r.n) == len(b)-shortSize && r.n > 0
	}
	return nil, false
}
