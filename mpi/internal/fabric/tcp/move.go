package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// moving is a Fetch, a Store or an Atomic of ours under way.
type moving struct {
	id   uint64
	b    []byte
	key  envelope.Key
	next int // of the bytes, to leave or to be asked for
	left int // that have not come
}

// fetchAhead is how much is asked for at a time.
const fetchAhead = 16 * pieceMax

// RDMARead implements protocol.Net.
func (f *Fabric) RDMARead(rank int, b []byte, key envelope.Key, move uint64) error {
	l, err := f.way(rank)
	if err == nil {
		m := &moving{id: move, b: b, key: key, left: len(b)}
		l.moves[move] = m
		l.fetches = append(l.fetches, m)
		l.ask()
	}
	return err
}

// RDMAWrite implements protocol.Net.
func (f *Fabric) RDMAWrite(rank int, b []byte, key envelope.Key, move uint64) error {
	l, err := f.way(rank)
	if err == nil {
		l.storing = &moving{id: move, b: b, key: key}
		l.moves[move] = l.storing
		l.store()
	}
	return err
}

// Atomic implements protocol.Atomics.
func (f *Fabric) Atomic(rank int, b []byte, key envelope.Key, a protocol.Atomic, move uint64) error {
	l, err := f.way(rank)
	if err == nil {
		l.moves[move] = &moving{id: move, b: b}
		h := frame{Kind: addFrame, Move: move, Addr: key.Addr, Key: key.RKey, Offset: a.Operand}
		if a.Swap {
			h.Kind, h.New = swapFrame, a.New
		}
		l.sendFrame(&h, nil)
	}
	return err
}

// way is the connection to a rank, if there is room on it.
func (f *Fabric) way(rank int) (*link, error) {
	l := f.links[rank]
	if l == nil || l.conn == nil || l.down {
		f.connect(rank)
		return nil, protocol.ErrNoRoom
	}
	if len(l.queue) > f.o.Queue || l.storing != nil {
		l.waiting = true
		return nil, protocol.ErrNoRoom
	}
	return l, nil
}

// ask asks for more of what is being fetched.
func (l *link) ask() {
	for len(l.fetches) > 0 && l.asked < fetchAhead {
		m := l.fetches[0]
		n := min(pieceMax, len(m.b)-m.next)
		l.sendFrame(&frame{Kind: fetchFrame, Move: m.id, Addr: m.key.Addr + uint64(m.next), Key: m.key.RKey, Offset: uint64(m.next), Bytes: uint32(n)}, nil)
		l.asked += n
		if m.next += n; m.next == len(m.b) {
			l.fetches[0] = nil
			l.fetches = l.fetches[1:]
		}
	}
}

// storeTurn is how much leaves at a stretch.
const storeTurn = 1 << 20

// store sends more of what is being stored. The goroutine that writes goes on with
// it.
func (l *link) store() {
	for turn := 0; l.storing != nil && turn < storeTurn && len(l.queue) <= l.f.o.Queue; {
		m := l.storing
		n := min(pieceMax, len(m.b)-m.next)
		h := frame{Kind: storeFrame, Move: m.id, Addr: m.key.Addr + uint64(m.next), Key: m.key.RKey, Bytes: uint32(n)}
		piece := m.b[m.next:][:n]
		if m.next += n; m.next == len(m.b) {
			h.Kind, l.storing = storeLast, nil
		}
		turn += n
		l.sendFrame(&h, piece)
	}
	if l.storing != nil {
		l.writeLater()
	}
}

// answered handles an answer to one of ours.
func (l *link) answered(c *protocol.Core, h *frame, payload []byte) error {
	m := l.moves[h.Move]
	if m == nil || m == l.storing {
		return fmt.Errorf("%w: an answer to %#x, which there is not", envelope.ErrMalformed, h.Move)
	}
	switch {
	case h.Kind == dataFrame:
		if m.left == 0 || h.Offset > uint64(m.next) || len(payload) > m.next-int(h.Offset) || len(payload) > m.left || len(payload) == 0 {
			return fmt.Errorf("%w: %d bytes at %d that were not asked for", envelope.ErrMalformed, len(payload), h.Offset)
		}
		copy(m.b[h.Offset:], payload)
		m.left -= len(payload)
		l.asked -= len(payload)
		l.ask()
		if m.left > 0 {
			return nil
		}
	case m.left > 0:
		return fmt.Errorf("%w: the end of %#x, of which %d bytes are missing", envelope.ErrMalformed, h.Move, m.left)
	case m.key == envelope.Key{}: // an Atomic
		binary.NativeEndian.PutUint64(m.b, h.Offset)
	}
	delete(l.moves, h.Move)
	c.TransferDone(h.Move, nil)
	return nil
}
