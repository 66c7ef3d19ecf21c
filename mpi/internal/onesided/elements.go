package onesided

import (
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// sendElements sends as many elements as a packet holds. It completes a transfer without
// replies with its last packet.
func (w *Window) sendElements(core *protocol.Core, t *transfer) error {
	o, e := &t.peer.sendQueue, &t.element
	limit := w.packetLimit(t.peer)
	carries := e.Size // bytes in the packet for each element
	switch t.packet {
	case packetGet:
		carries = 0
	case packetCompareAndSwap:
		carries = 2 * e.Size
	}
	var n int
	w.out.Element = *e
	w.out.Vectors, n = t.nextVectors(w.out.Vectors[:0], limit, carries)
	from := t.next
	t.next += n
	b := w.out.Append(t.region.appendID(w.packet[:0]))
	if t.packet != packetGet {
		b = appendPacked(b, t.send.Slice(from, t.next))
	}
	if t.packet == packetCompareAndSwap {
		b = appendPacked(b, t.compare)
	}
	w.packet = b
	last := t.next == t.elements
	h := envelope.Header{Context: w.comm.ContextID, Tag: t.packet.encodeTag(t.elementKind(), t.op), ID: t.id, Length: uint64(from * e.Size)}
	if t.id != 0 {
		o.replies++
	} else {
		o.countPacket(&h, last && o.queuedCount() == 1 && o.flushes > 0)
	}
	job, replies := t.peer.job, t.id != 0
	if last {
		o.pop()
	}
	err := core.SendActive(job, h, b) // to this rank itself: replies arrive before it returns
	if last && !replies {
		t.complete(err)
	}
	if cap(w.packet) > maxKeptPacket {
		w.packet = nil
	}
	return err
}

// maxKeptPacket is the maximum size of a packet buffer that is kept, in bytes.
const maxKeptPacket = 1 << 20

// appendPacked appends packed elements to b.
func appendPacked(b []byte, elements datatype.Buffer) []byte {
	n := len(b)
	b = append(b, make([]byte, elements.Size())...)
	elements.Pack(b[n:])
	return b
}

func (t *transfer) elementKind() datatype.Kind {
	if t.packet == packetGet {
		return t.recv.Kind()
	}
	return t.send.Kind()
}

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
		some, n := t.place.AppendVectors(&cursor, list, most, e.Extent, t.peer.unit)
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

// maxVectors is the maximum number of vectors of a packet.
const maxVectors = 256

// fitsPacket reports whether a packet can hold one element.
func (t *transfer) fitsPacket() bool {
	n := t.element.Size
	if t.packet == packetCompareAndSwap {
		n *= 2
	}
	return t.element.EncodedSize(1)+n <= t.w.packetLimit(t.peer)
}
