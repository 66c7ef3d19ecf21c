package onesided

import (
	"fmt"
	"math"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Blocks of at least this many bytes are transferred by RDMA one by one; shorter ones are
// packed into packets.
const directPiece = 1 << 10

// startCopy starts a Put or a Get: by RDMA if the elements are in one block or in few; as a
// message if RDMA is not available and they are many, up to maxMessages at a time; else in
// packets.
func (w *Window) startCopy(core *protocol.Core, t *transfer) error {
	p, bytes := t.peer, t.elements*t.element.Size
	dense := len(t.element.Pieces) == 0
	row := dense && t.At.IsContiguous()
	own := p.rank == w.comm.Rank
	switch {
	case own && row:
		mem := w.localBytes(t.region)[t.At.Offset(p.unit):][:bytes]
		if t.packet == packetPut {
			t.send.Pack(mem)
		} else {
			t.recv.Unpack(mem)
		}
		t.complete(nil)
	case t.region.direct && row:
		t.stageBuffer()
		w.startRDMA(core, t, t, t.At.Offset(p.unit), t.staging)
	case t.region.direct && dense && bytes/t.At.Blocks() >= directPiece:
		w.rdmaBlocks(core, t)
	case !own && row && bytes > w.packetLimit(p)-t.element.EncodedSize(1) && p.sendQueue.rdmaOps < maxMessages:
		w.startMessage(core, t)
	case !t.fitsPacket():
		err := fmt.Errorf("%w: element of %d bytes exceeds a packet; raise Options.RDMA.Eager", datatype.ErrSignature, t.element.Size)
		t.result = nil
		t.complete(nil)
		return err
	default:
		if t.packet == packetGet {
			t.bytesLeft = bytes
		}
		w.enqueueTransfer(core, t)
	}
	return nil
}

// startRDMA starts an RDMA operation for a part of a transfer.
func (w *Window) startRDMA(core *protocol.Core, parent, t *transfer, off int, mem []byte) {
	t.startPart(parent)
	t.request.Buf = mem
	key := parent.region.key
	key.Addr += uint64(off)
	if parent.packet == packetPut {
		core.Put(&t.request, key)
	} else {
		core.Get(&t.request, key)
	}
}

// rdmaBlocks starts one RDMA operation for each block.
func (w *Window) rdmaBlocks(core *protocol.Core, t *transfer) {
	t.stageBuffer()
	t.parts++ // until all have started
	e := &t.element
	var list [16]rma.Vector
	for mem := t.staging; t.next < t.elements; {
		vectors, n := t.At.AppendVectors(&t.cursor, list[:0], t.elements-t.next, e.Extent, t.peer.unit)
		t.next += n
		for _, v := range vectors {
			for i := range v.Count {
				n := v.N * e.Size
				w.startRDMA(core, t, w.newTransfer(t.peer), v.Off+i*v.Stride, mem[:n])
				mem = mem[n:]
			}
		}
	}
	t.completePart()
}

// startMessage transfers the elements as a message between the ranks.
func (w *Window) startMessage(core *protocol.Core, t *transfer) {
	t.stageBuffer()
	p := t.peer
	p.sendQueue.tag = (p.sendQueue.tag + 1) & math.MaxInt32
	what, own := packetSend, &w.peers[w.comm.Rank]
	if t.packet == packetGet {
		what, own = packetFetch, p
	}
	b := &w.buffers
	b.out = rma.Target{Element: rma.DenseElement(1), Vectors: append(b.out.Vectors[:0], rma.Vector{Off: t.At.Offset(p.unit), N: len(t.staging), Count: 1})}
	b.packet = b.out.Append(t.region.appendID(b.packet[:0]))
	t.startPart(t)
	t.request.Buf = t.staging
	t.request.Envelope = w.messageEnvelope(what, own, p.sendQueue.tag)
	h := envelope.Header{Context: w.comm.ContextID, Tag: int32(what), ID: uint64(p.sendQueue.tag), Length: uint64(len(t.staging))}
	if what == packetSend {
		p.sendQueue.countPacket(&h, false)
		p.sendQueue.lastMessage = p.sendQueue.sent
	}
	_ = core.SendActive(p.job, h, b.packet) // if the rank is lost the message fails, too
	if t.packet == packetGet {
		core.Receive(&t.request)
	} else {
		core.Send(&t.request)
	}
}

// messageEnvelope returns the envelope of messages that put elements to a rank, or fetch them.
func (w *Window) messageEnvelope(k packetType, from *peer, tag int32) match.Envelope {
	e := match.Envelope{Context: w.comm.ContextID, Source: int32(from.job), Tag: tag}
	if k == packetFetch {
		e.Context++
	}
	return e
}

// localBytes returns the memory of a region of this rank.
func (w *Window) localBytes(remote *remoteRegion) []byte {
	if remote.id == 0 {
		return w.staticRegion.Bytes
	}
	return w.dynamic.regions[remote.id].Bytes
}
