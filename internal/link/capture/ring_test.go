package capture

import (
	"io"
	"sync"
)

// Ring is a Recorder that keeps the last packets in memory, to be dumped after a failure. Taps may
// share a ring.
type Ring struct {
	mu    sync.Mutex
	slots []Packet // Data belongs to the slot and has the capacity of the largest packet it held
	next  uint64   // packets recorded so far
}

// NewRing returns a ring for n packets, at least one.
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

// Dump writes the packets of the ring as pcapng, oldest first. Recording continues meanwhile, and
// packets that it overwrites before they were written are missing.
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

// copy copies the i-th packet recorded to p, unless it was overwritten. A recorder waits for one
// packet at most.
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
