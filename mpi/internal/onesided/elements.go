package onesided

import (
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// fitsPacket reports whether a packet can hold one element.
func (t *transfer) fitsPacket() bool {
	n := t.element.Size
	if t.packet == packetCompareAndSwap {
		n *= 2
	}
	return t.element.EncodedSize(1)+n <= t.w.packetLimit(t.peer)
}

func (t *transfer) elementKind() datatype.Kind {
	if t.packet == packetGet {
		return t.recv.Kind()
	}
	return t.send.Kind()
}

// maxVectors is the maximum number of vectors of a packet.
const maxVectors = 256

// nextVectors returns the target vectors of the next packet and the number of its elements.
// Vectors fill at most half of the packet if there are several.
func (t *transfer) nextVectors(list []rma.Vector, limit, carries int) ([]rma.Vector, int) {
	e := &t.element
	most := min(limit/e.Size, t.elements-t.next)
	room := (limit - e.EncodedSize(0)) / rma.VectorSize
	if carries > 0 {
		room /= 2
		most = min(most, (limit-e.EncodedSize(1))/carries)
	}
	room = min(max(1, room), maxVectors)
	if cap(list) < room {
		list = make([]rma.Vector, 0, room)
	}
	list = list[:0:room]
	for {
		cursor := t.cursor
		some, n := t.At.AppendVectors(&cursor, list, most, e.Extent, t.peer.unit)
		if len(some) == 1 || e.EncodedSize(len(some))+n*carries <= limit {
			t.cursor = cursor
			return some, n
		}
		most = max(1, (limit-e.EncodedSize(len(some)))/carries)
		if most == 1 {
			list = list[:0:1]
		}
	}
}

// appendPacked appends packed elements to b.
func appendPacked(b []byte, elements datatype.Buffer) []byte {
	n := len(b)
	b = append(b, make([]byte, elements.Size())...)
	elements.Pack(b[n:])
	return b
}
