package tcp

import (
	"bufio"
	"fmt"
	"io"
	"net"

	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A link is the connection to a rank. The engine's lock guards it.
type link struct {
	f             *Fabric
	rank          int
	conn          *net.TCPConn
	failed        bool
	coreWaiting   bool   // the core waits for room in queue
	queue         []byte // bytes that the socket did not accept yet
	writerRunning bool   // the writer goroutine is running
	frame         [envelope.Size]byte

	transfers      map[uint64]*transfer // started by this rank
	currentWrite   *transfer            // an RDMAWrite being sent, which blocks all packets after it
	pendingReads   []*transfer          // RDMAReads not completely requested yet
	requestedBytes int                  // bytes requested and not received

	liveness livenessState
}

func newLink(f *Fabric, rank int) *link {
	return &link{f: f, rank: rank, transfers: map[uint64]*transfer{}}
}

func (l *link) sendPacket(h *envelope.Header, payload []byte) {
	h.MarshalTo(l.frame[:])
	l.writeFrames(payload)
}

func (l *link) sendFrame(h *frame, payload []byte) {
	h.marshalTo(l.frame[:])
	l.writeFrames(payload)
}

// writeFrames sends l.frame and payload, and queues the part that the socket does not
// accept at once.
func (l *link) writeFrames(payload []byte) {
	if l.failed {
		return
	}
	l.liveness.sent = true
	n := 0
	if len(l.queue) == 0 && !l.writerRunning {
		racesync.Release()
		n = tryWrite(l.conn, l.frame[:], payload) // the writer repeats an error
	}
	if n < len(l.frame) {
		l.queue = append(append(l.queue, l.frame[n:]...), payload...)
	} else if n -= len(l.frame); n < len(payload) {
		l.queue = append(l.queue, payload[n:]...)
	}
	if len(l.queue) > 0 {
		l.startWriter()
	}
}

// startWriter starts the writer goroutine.
func (l *link) startWriter() {
	if !l.writerRunning {
		l.writerRunning = true
		l.f.work.Go(l.writeLoop)
	}
}

// writeLoop sends the queue and the current RDMAWrite until both are empty.
func (l *link) writeLoop() {
	var out []byte
	for {
		l.f.host.Do(func(c *protocol.Core) {
			l.writePending()
			out, l.queue = l.queue, out[:0]
			l.writerRunning = len(out) > 0
			if l.coreWaiting && l.currentWrite == nil {
				l.coreWaiting = false
				c.Resume(l.rank)
			}
		})
		if len(out) == 0 {
			return
		}
		racesync.Release()
		if _, err := l.conn.Write(out); err != nil {
			l.f.host.Do(func(*protocol.Core) { l.f.failLink(l, err) })
			return
		}
	}
}

// readLoop handles received packets and frames.
func (l *link) readLoop() {
	in := bufio.NewReaderSize(l.conn, 128<<10)
	var header [envelope.Size]byte
	payload := make([]byte, max(l.f.o.Eager, maxFramePayload))
	for {
		var h envelope.Header
		_, err := io.ReadFull(in, header[:])
		if err == nil && isFrame(header[:]) {
			if !l.readFrame(in, header[:], payload) {
				return
			}
			continue
		}
		if err == nil {
			err = h.Unmarshal(header[:])
		}
		if err == nil && (int(h.Source) != l.rank || int64(h.Bytes) > int64(l.f.o.Eager)) {
			err = fmt.Errorf("%w: payload of %d bytes of rank %d", envelope.ErrMalformed, h.Bytes, h.Source)
		}
		if err == nil {
			_, err = io.ReadFull(in, payload[:h.Bytes])
		}
		racesync.Acquire()
		l.f.host.Do(func(c *protocol.Core) {
			l.markAlive()
			if err == nil {
				err = c.HandlePacket(l.rank, &h, payload[:h.Bytes])
			}
			if err != nil {
				l.f.failLink(l, err)
			}
		})
		if err != nil {
			return
		}
	}
}

// readFrame handles a frame, and reports whether reading can continue.
func (l *link) readFrame(in io.Reader, header, payload []byte) bool {
	var h frame
	err := h.unmarshal(header)
	if err == nil {
		payload = payload[:h.payloadSize()]
		_, err = io.ReadFull(in, payload)
	}
	racesync.Acquire()
	l.f.host.Do(func(c *protocol.Core) {
		l.markAlive()
		switch {
		case err != nil:
		case h.Kind == pingFrame:
			l.sendFrame(&frame{Kind: pongFrame}, nil)
			l.markAlive() // a pong needs no reply
		case h.Kind == pongFrame:
		case h.Kind == readReplyFrame || h.Kind == doneFrame:
			err = l.handleReply(c, &h, payload)
		default:
			err = l.handleMemoryFrame(&h, payload)
		}
		if err != nil {
			l.f.failLink(l, err)
		}
	})
	return err == nil
}
