package rdm

import "encoding/binary"

// Operations that are emulated are messages of these kinds. All of them fit into one
// datagram: reads and writes are cut into pieces of an MTU.
//
//	 0     1        2     4     8      12     16       24      32      40
//	+-----+--------+-----+-----+------+------+--------+-------+-------+
//	| tag | status | 0   | id  | RKey | n    | addr   | a     | b     |
//	+-----+--------+-----+-----+------+------+--------+-------+-------+
//
//	READ     n bytes at addr with RKey are wanted
//	DATA     a piece of them, behind 24 bytes: addr is its place among them
//	WRITE    a piece for addr, behind 24 bytes; status 1: the last of the operation
//	SWAP     compare with a, and swap in b
//	ADD      add a
//	END      of WRITE, SWAP, ADD, and of READ that failed: its status, and in a
//	         what an atomic has found
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

// status is what has become of an operation.
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

// toError is the status as an error.
func (s status) toError() error {
	if s >= statuses {
		return ErrProtocol
	}
	return [statuses]error{nil, ErrKey, ErrBounds, ErrAccess, ErrDenied, ErrAlign, ErrFault}[s]
}

// request is a message about an operation.
type request struct {
	tag    byte
	status status
	id     uint32
	rkey   uint32
	n      uint32
	addr   uint64
	a, b   uint64
}

// hasOperands tells kinds that have them.
func hasOperands(tag byte) bool {
	return tag == tagSwap || tag == tagAdd || tag == tagEnd || tag == tagToken
}

// encode writes the head of a message to b and returns its length.
func (r *request) encode(b *[headSize]byte) int {
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

// decode reads a message and returns what is behind the head.
func (r *request) decode(b []byte) (payload []byte, ok bool) {
	if len(b) < shortSize || b[2] != 0 || b[3] != 0 {
		return nil, false
	}
	be := binary.BigEndian
	*r = request{tag: b[0], status: status(b[1]), id: be.Uint32(b[4:]), rkey: be.Uint32(b[8:]), n: be.Uint32(b[12:]), addr: be.Uint64(b[16:])}
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
