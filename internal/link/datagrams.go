package link

// slotBytes holds any UDP datagram and anything GRO merges.
const slotBytes = 1 << 16

// Datagrams receives a batch: a fixed number of slots, each large enough for
// any result of one receive call. Links fill it, adapters read Msgs.
//
// It belongs to one goroutine at a time.
type Datagrams struct {
	msgs  []Datagram // filled so far; the capacity is the number of slots
	slots [][]byte   // 64 KiB each, nil until first used

	refusals []Refusal

	// Cheap is set by a ReadBatch that found nothing and made no system call.
	Cheap bool
}

// NewDatagrams returns a Datagrams with the given number of slots, at least
// one. A slot's 64 KiB are allocated on first use.
func NewDatagrams(slots int) *Datagrams {
	return &Datagrams{msgs: make([]Datagram, 0, slots), slots: make([][]byte, slots)}
}

// Msgs returns the datagrams of the last ReadBatch. They and their buffers are
// valid until the next ReadBatch with the same Datagrams.
func (r *Datagrams) Msgs() []Datagram { return r.msgs }

// Cap returns the number of slots.
func (r *Datagrams) Cap() int { return len(r.slots) }

// Reset removes the datagrams and keeps the memory of the slots. A link calls
// it at the start of ReadBatch.
func (r *Datagrams) Reset() { r.msgs, r.refusals, r.Cheap = r.msgs[:0], r.refusals[:0], false }

// Full reports whether every slot is filled.
func (r *Datagrams) Full() bool { return len(r.msgs) == len(r.slots) }

// Slot returns the 64 KiB of slot i, 0 <= i < Cap, for a link to receive into.
func (r *Datagrams) Slot(i int) []byte {
	if r.slots[i] == nil {
		r.slots[i] = make([]byte, slotBytes)
	}
	return r.slots[i]
}

// Add fills the next slot with d, whose Buf lies in that slot's memory or in
// the link's own, unchanged until the next ReadBatch. It panics when r is full.
func (r *Datagrams) Add(d Datagram) {
	r.msgs = r.msgs[:len(r.msgs)+1]
	r.msgs[len(r.msgs)-1] = d
}

// Count returns the number of packets in the datagram, at least 1.
func (d *Datagram) Count() int {
	if d.Seg <= 0 || d.Seg >= len(d.Buf) {
		return 1
	}
	return (len(d.Buf) + d.Seg - 1) / d.Seg
}

// Packet returns packet i, 0 <= i < Count: BTH to ICRC. Its index is also
// the IPv4 identification a GSO sender gave it, if GRO kept the sender's group.
//
//	for i := range d.Count() {
//		pkt := d.Packet(i)
//	}
func (d *Datagram) Packet(i int) []byte {
	if d.Seg <= 0 || d.Seg >= len(d.Buf) {
		return d.Buf
	}
	off := i * d.Seg
	end := min(off+d.Seg, len(d.Buf))
	return d.Buf[off:end:end]
}
