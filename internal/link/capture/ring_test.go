package capture

import (
	"io"
	"sync"
)

// Ring is a Recorder that keeps the last packets in memory: a black box to be
// opened after something went wrong. Taps may share one.
type Ring struct {
	mu    sync.Mutex
	slots []Packet // Data is the slot's own, its memory that of the largest packet it held
	next  uint64   // packets ever recorded
}

// NewRing returns a ring for so many packets, at least one.
func NewRing(packets int) *Ring { return &Ring{slots: make([]Packet, max(packets, 1))} }

// Record implements Recorder.
func (r *Ring) Record(p *Packet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.slots[r.next%uint64(len(r.slots))]
	data := append(s.Data[:0], p.Data...)
	*s = *p
	s.Data = data
	r.next++
}

// Dump writes what the ring holds as pcapng, oldest first. Recording goes on
// meanwhile; packets that it overwrites before they were written are missing.
func (r *Ring) Dump(w io.Writer) error {
	r.mu.Lock()
	end := r.next
	r.mu.Unlock()
	begin := end - min(end, uint64(len(r.slots)))
	out := newPcapng(w)
	var p Packet
	var written uint64
	for i := begin; i < end; i++ {
		if !r.copy(i, &p) {
			continue
		}
		if err := out.writePacket(&p); err != nil {
			return err
		}
		written++
	}
	return out.finish(written, end-written)
}

// copy copies the i-th packet ever recorded to p, unless it was overwritten.
// Nobody who records waits longer than for one packet.
func (r *Ring) copy(i uint64, p *Packet) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next > i+uint64(len(r.slots)) {
		return false
	}
	data := p.Data
	*p = r.slots[i%uint64(len(r.slots))]
	p.Data = append(data[:0], p.Data...)
	return true
}
