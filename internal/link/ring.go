package link

import (
	"net/netip"
	"sync"

	"github.com/softrnic/softrnic/internal/fifo"
)

// ringSlots bounds the datagrams queued between the portable link's goroutine
// and its reader, beyond the socket's own buffer.
const ringSlots = 1024

// A ring is a bounded queue of datagrams. A slot keeps the memory of the
// largest packet it ever held.
type ring struct {
	mu    sync.Mutex
	queue fifo.Slots[queuedDatagram]
}

type queuedDatagram struct {
	src netip.AddrPort
	tos uint8
	buf []byte
}

// push copies a datagram into the queue, or returns false if it is full.
func (r *ring) push(src netip.AddrPort, tos uint8, pkt []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.queue.Push(ringSlots)
	if s == nil {
		return false
	}
	s.src, s.tos, s.buf = src, tos, append(s.buf[:0], pkt...)
	return true
}

// pop copies queued datagrams into the slots of d, as many as fit.
func (r *ring) pop(d *Datagrams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := 0; r.queue.Len() > 0 && !d.Full(); i++ {
		s := r.queue.Pop()
		n := copy(d.Slot(i), s.buf)
		d.Add(Datagram{Src: s.src, TOS: s.tos, Buf: d.Slot(i)[:n], Seg: n})
	}
}

func (r *ring) isEmpty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue.Len() == 0
}
