package tcp

import (
	"bufio"
	"fmt"
	"io"
	"net"

	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/protocol"
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
}

// send sends a packet, or queues what the system does not take at once.
func (l *link) send(h *envelope.Header, payload []byte) {
	if l.down {
		return
	}
	h.Put(l.frame[:])
	n := 0
	if len(l.queue) == 0 && !l.writing {
		n = try(l.conn, l.frame[:], payload) // an error comes again
	}
	if n < len(l.frame) {
		l.queue = append(append(l.queue, l.frame[n:]...), payload...)
	} else if n -= len(l.frame); n < len(payload) {
		l.queue = append(l.queue, payload[n:]...)
	}
	if len(l.queue) > 0 && !l.writing {
		l.writing = true
		l.f.work.Go(l.write)
	}
}

// write sends what is queued, until there is no more.
func (l *link) write() {
	var out []byte
	for {
		l.f.host.Do(func(c *protocol.Core) {
			out, l.queue = l.queue, out[:0]
			l.writing = len(out) > 0
			if l.waiting {
				l.waiting = false
				c.Resume(l.rank)
			}
		})
		if len(out) == 0 {
			return
		}
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
	payload := make([]byte, l.f.o.Eager)
	for {
		var h envelope.Header
		_, err := io.ReadFull(in, header[:])
		if err == nil {
			err = h.Get(header[:])
		}
		if err == nil && (int(h.Source) != l.rank || int64(h.Bytes) > int64(len(payload))) {
			err = fmt.Errorf("%w: %d bytes of payload of rank %d", envelope.ErrMalformed, h.Bytes, h.Source)
		}
		if err == nil {
			_, err = io.ReadFull(in, payload[:h.Bytes])
		}
		l.f.host.Do(func(c *protocol.Core) {
			if err == nil {
				err = c.Packet(l.rank, &h, payload[:h.Bytes])
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
