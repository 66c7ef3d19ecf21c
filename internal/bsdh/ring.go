package bsdh

import "encoding/binary"

// RingUpdate is the extended header of MIDRingUpdate: the sender has read from its
// ring and freed space.
type RingUpdate struct {
	Freed uint64 // total bytes freed since the connection was established
}

// Append appends the extended header to b.
func (u RingUpdate) Append(b []byte) []byte { return binary.BigEndian.AppendUint64(b, u.Freed) }

func parseRingUpdate(b []byte) (u RingUpdate, err error) {
	if err := checkLength(b, "RingUpdate", updateBytes); err != nil {
		return u, err
	}
	return RingUpdate{binary.BigEndian.Uint64(b)}, nil
}

// RingChange is the extended header of MIDRingChange: the sender replaces its ring.
// The receiver replies with MIDRingSwitched and uses the new ring from then on.
//
//	0  ring size     4  R_Key     8  virtual address, 64 bits
type RingChange struct {
	Ring uint32 // length in bytes
	RKey uint32
	Addr uint64
}

// Append appends the extended header to b.
func (c RingChange) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, c.Ring)
	b = binary.BigEndian.AppendUint32(b, c.RKey)
	return binary.BigEndian.AppendUint64(b, c.Addr)
}

func parseRingChange(b []byte) (c RingChange, err error) {
	if err := checkLength(b, "RingChange", changeBytes); err != nil {
		return c, err
	}
	return RingChange{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])}, nil
}

// MaxRing is the maximum length of a ring in bytes, limited by Imm.
const MaxRing = 1 << 31

// Imm is the immediate data of an RDMA WRITE into a ring: 31 bits of an offset
// into the ring, and the top bit if the last byte of the write is urgent.
type Imm uint32

const immUrgent = 1 << 31

// MakeImm returns the immediate data for an offset less than MaxRing. Larger offsets
// are truncated to 31 bits.
func MakeImm(offset uint32, urgent bool) Imm {
	i := Imm(offset &^ immUrgent)
	if urgent {
		i |= immUrgent
	}
	return i
}

// Offset returns the offset in the ring in bytes.
func (i Imm) Offset() uint32 { return uint32(i) &^ immUrgent }

// Urgent reports whether the last byte of the write is urgent.
func (i Imm) Urgent() bool { return i&immUrgent != 0 }
