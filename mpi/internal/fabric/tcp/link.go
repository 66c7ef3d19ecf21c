package tcp

import (
	"bufio"
	"fmt"
	"io"
	"net"

	"github.com/softrnic/softrnic/internal/order"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// link is the connection to a rank. The engine's lock guards it.
type link struct {
	f       *Fabric
	rank    int
	conn    *net.TCPConn
	down    bool
	waiting bool   // the core waits for room in the queue
	queue   []byte // what the system did not take yet
	writing bool   // a goroutine is at it
	frame   [envelope.Size]byte

	moves   map[uint64]*moving // of ours
	storing *moving            // a Store that has not left yet, before everything that follows
	fetches []*moving          // that are not asked for yet
	asked   int                // bytes that are and have not come

	alive alive
}

func newLink(f *Fabric, rank int) *link { return &link{f: f, rank: rank, moves: map[uint64]*moving{}} }

// send sends a packet.
func (l *link) send(h *envelope.Header, payload []byte) {
	h.MarshalTo(l.frame[:])
	l.leave(payload)
}

// sendFrame sends a frame.
func (l *link) sendFrame(h *frame, payload []byte) {
	h.put(l.frame[:])
	l.leave(payload)
}

// leave sends l.frame and what follows, or queues what the system does not take at
// once.
func (l *link) leave(payload []byte) {
	if l.down {
		return
	}
	l.alive.sent = true
	n := 0
	if len(l.queue) == 0 && !l.writing {
		order.Release()
		n = try(l.conn, l.frame[:], payload) // an error comes again
	}
	if n < len(l.frame) {
		l.queue = append(append(l.queue, l.frame[n:]...), payload...)
	} else if n -= len(l.frame); n < len(payload) {
		l.queue = append(l.queue, payload[n:]...)
	}
	if len(l.queue) > 0 {
		l.writeLater()
	}
}

// writeLater starts the goroutine that writes.
func (l *link) writeLater() {
	if !l.writing {
		l.writing = true
		l.f.work.Go(l.write)
	}
}

// write sends what is queued or being stored, until there is no more.
func (l *link) write() {
	var out []byte
	for {
		l.f.host.Do(func(c *protocol.Core) {
			l.store()
			out, l.queue = l.queue, out[:0]
			l.writing = len(out) > 0
			if l.waiting && l.storing == nil {
				l.waiting = false
				c.Resume(l.rank)
			}
		})
		if len(out) == 0 {
			return
		}
		order.Release()
		if _, err := l.conn.Write(out); err != nil {
			l.f.host.Do(func(*protocol.Core) { l.f.lose(l, err) })
			return
		}
	}
}

// read handles what comes.
func (l *link) read() {
	in := bufio.NewReaderSize(l.conn, 128<<10)
	var header [envelope.Size]byte
	payload := make([]byte, max(l.f.o.Eager, pieceMax))
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
			err = fmt.Errorf("%w: %d bytes of payload of rank %d", envelope.ErrMalformed, h.Bytes, h.Source)
		}
		if err == nil {
			_, err = io.ReadFull(in, payload[:h.Bytes])
		}
		order.Acquire()
		l.f.host.Do(func(c *protocol.Core) {
			l.heard()
			if err == nil {
				err = c.HandlePacket(l.rank, &h, payload[:h.Bytes])
			}
			if err != nil {
				l.f.lose(l, err)
			}
		})
		if err != nil {
			return
		}
	}
}

// readFrame handles a frame, and reports whether there may be more.
func (l *link) readFrame(in io.Reader, header, payload []byte) bool {
	var h frame
	err := h.get(header)
	if err == nil {
		payload = payload[:h.payload()]
		_, err = io.ReadFull(in, payload)
	}
	order.Acquire()
	l.f.host.Do(func(c *protocol.Core) {
		l.heard()
		switch {
		case err != nil:
		case h.Kind == pingFrame:
			l.sendFrame(&frame{Kind: pongFrame}, nil)
			l.heard() // a Pong wants no answer
		case h.Kind == pongFrame:
		case h.Kind == dataFrame || h.Kind == doneFrame:
			err = l.answered(c, &h, payload)
		default:
			err = l.serve(&h, payload)
		}
		if err != nil {
			l.f.lose(l, err)
		}
	})
	return err == nil
}
