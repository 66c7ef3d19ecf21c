package tcp

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// A link is the connection to a rank. The engine's lock guards it.
type link struct {
	f      *Fabric
	rank   int
	socket socket // nil until connected
	failed bool

	// Send side.
	queue       sendQueue // a batch, or bytes that the system did not accept
	blocked     bool      // the system accepts nothing; continueWriting follows
	coreWaiting bool      // the core waits for room in queue
	lastFlush   uint64    // Fabric.flushes when a packet was sent last
	frame       [envelope.Size]byte
	list        [3][]byte // for socket.writeSome

	in input // received, with memory only while it is not empty; see receiver

	transfers      map[uint64]*transfer // started by this rank
	currentWrite   *transfer            // an RDMAWrite being sent, which blocks all packets after it
	pendingReads   []*transfer          // RDMAReads not completely requested yet
	requestedBytes int                  // bytes requested and not received

	liveness livenessState
}

func newLink(f *Fabric, rank int) *link {
	return &link{f: f, rank: rank, transfers: map[uint64]*transfer{}}
}

// Consecutive short packets are coalesced: all except the first are written together. The
// batch is written when it is long enough, when the program waits or polls, and after
// batchTime at the latest.
const (
	maxBatchedPayload = 4 << 10  // in bytes; longer ones are not copied
	batchSize         = 32 << 10 // in bytes
)

func (l *link) sendPacket(h *envelope.Header, payload []byte) {
	h.MarshalTo(l.frame[:])
	l.writeFrame(payload)
}

func (l *link) sendFrame(h *frame, payload []byte) {
	h.marshalTo(l.frame[:])
	l.writeFrame(payload)
}

// writeFrame sends l.frame and payload: it adds them to the batch, or writes them and
// queues the rest that the system does not accept.
func (l *link) writeFrame(payload []byte) {
	if l.failed {
		return
	}
	l.liveness.sent = true
	first := l.lastFlush != l.f.flushes
	l.lastFlush = l.f.flushes
	switch {
	case l.blocked:
		l.queue.appendBytes(l.frame[:])
		l.queue.appendBytes(payload)
	case first || len(payload) > maxBatchedPayload:
		l.writeNow(l.frame[:], payload)
	default:
		l.f.coalesced++
		if len(l.queue.pendingBytes()) == 0 {
			l.f.addBatch(l)
		}
		l.queue.appendBytes(l.frame[:])
		l.queue.appendBytes(payload)
		if len(l.queue.pendingBytes()) >= min(batchSize, l.f.o.Queue) {
			l.writeNow(nil, nil)
		}
	}
}

// writeNow writes the queue, head and payload, and queues the rest that the system does not
// accept.
func (l *link) writeNow(head, payload []byte) {
	list := l.list[:0]
	total := 0
	for _, b := range [...][]byte{l.queue.pendingBytes(), head, payload} {
		if len(b) > 0 {
			list = append(list, b)
			total += len(b)
		}
	}
	if total == 0 {
		return
	}
	n, err := l.socket.writeSome(list)
	clear(l.list[:])
	if err != nil {
		l.blocked = true
		l.f.failLater(l, err)
		return
	}
	l.blocked = n < total
	queued := min(n, len(l.queue.pendingBytes()))
	l.queue.removeFirst(queued)
	n -= queued
	for _, b := range [...][]byte{head, payload} {
		l.queue.appendBytes(b[min(n, len(b)):])
		n -= min(n, len(b))
	}
	if l.blocked {
		l.socket.awaitWritable(true)
	}
}

// continueWriting writes the queue and the current RDMAWrite after the system has
// accepted nothing for a while.
func (l *link) continueWriting() {
	if l.failed {
		return
	}
	l.blocked = false
	l.writeNow(nil, nil)
	l.writePending()
	l.resumeCore()
	if !l.blocked {
		l.socket.awaitWritable(false)
	}
}

// resumeCore resumes the core if it waits for room and there is some.
func (l *link) resumeCore() {
	if l.coreWaiting && l.currentWrite == nil && len(l.queue.pendingBytes()) <= l.f.o.Queue {
		l.coreWaiting = false
		l.f.host.Core().Resume(l.rank)
	}
}

// handleInput handles the complete packets and frames of in.
func (l *link) handleInput(in *input) error {
	for !l.failed && in.w-in.r >= envelope.Size {
		b := in.unhandledBytes()
		header, size, err := b[:envelope.Size], 0, error(nil)
		h, fr := &l.f.header, &l.f.inFrame
		if isFrame(header) {
			err = fr.unmarshal(header)
			size = fr.payloadSize()
		} else if err = h.Unmarshal(header); err == nil {
			size = int(h.Bytes)
			if int(h.Source) != l.rank || int64(h.Bytes) > int64(l.f.o.Eager) {
				err = fmt.Errorf("%w: payload of %d bytes of rank %d", envelope.ErrMalformed, h.Bytes, h.Source)
			}
		}
		if err != nil || len(b) < envelope.Size+size {
			return err
		}
		in.r += envelope.Size + size
		payload := b[envelope.Size:][:size]
		if isFrame(header) {
			err = l.handleFrame(fr, payload)
		} else {
			err = l.f.host.Core().HandlePacket(l.rank, h, payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// handleFrame handles a frame of the RDMA emulation.
func (l *link) handleFrame(h *frame, payload []byte) error {
	switch h.Kind {
	case pingFrame:
		l.sendFrame(&frame{Kind: pongFrame}, nil)
		l.markAlive() // a pong needs no reply
		return nil
	case pongFrame:
		return nil
	case readReplyFrame, doneFrame:
		return l.handleReply(l.f.host.Core(), h, payload)
	}
	return l.handleMemoryFrame(h, payload)
}
