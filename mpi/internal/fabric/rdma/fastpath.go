package rdma

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/verbs"
)

// A packetRing is memory that a rank writes packets to and this rank polls: the RDMA
// fast path (iWARP paper, section 3.3). A packet ends at the end of its slot, with its
// header after the payload, so that the word written last is always at the same offset.
type packetRing struct {
	mr   verbs.MR
	l    *link
	size int // of a slot
	last int // offset of the last word of the next packet's slot
}

// A remoteRing is the address of a ring at the other rank, to write packets to.
type remoteRing struct {
	addr uint64
	rkey uint32
	size uint32 // of a slot
	n    uint32 // number of slots; 0 is no ring
	head uint32 // slot of the next packet
}

const remoteRingSize = 20

func (v *remoteRing) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, v.addr)
	b = binary.BigEndian.AppendUint32(b, v.rkey)
	b = binary.BigEndian.AppendUint32(b, v.size)
	return binary.BigEndian.AppendUint32(b, v.n)
}

func (v *remoteRing) unmarshal(b []byte) {
	if len(b) < remoteRingSize {
		return
	}
	*v = remoteRing{addr: binary.BigEndian.Uint64(b), rkey: binary.BigEndian.Uint32(b[8:]), size: binary.BigEndian.Uint32(b[12:]), n: binary.BigEndian.Uint32(b[16:])}
	if v.size < envelope.Size || v.size%8 != 0 {
		*v = remoteRing{}
	}
}

// createRing creates the ring of a connection, and returns its address for the rank. It
// has a slot per credit, so that a credit implies a free slot.
func (f *Fabric) createRing(l *link) (v remoteRing, err error) {
	rings := f.rings.Load()
	if !f.o.Fast || rings != nil && len(*rings) >= f.o.FastPeers {
		return remoteRing{}, nil
	}
	r := &packetRing{l: l, size: f.o.FastSize, last: f.o.FastSize - 8}
	if r.mr, err = f.pd.RegMR(make([]byte, f.o.Credits*r.size), verbs.AccessLocalWrite|verbs.AccessRemoteWrite); err != nil {
		return remoteRing{}, err
	}
	list := []*packetRing{r}
	if rings != nil {
		list = append(list, *rings...)
	}
	f.rings.Store(&list)
	return remoteRing{addr: r.mr.Addr(), rkey: r.mr.RKey(), size: uint32(r.size), n: uint32(f.o.Credits)}, nil
}

// removeRing stops polling a connection's ring.
func (f *Fabric) removeRing(l *link) {
	rings := f.rings.Load()
	if rings == nil {
		return
	}
	var list []*packetRing
	for _, r := range *rings {
		if r.l != l {
			list = append(list, r)
		}
	}
	f.rings.Store(&list)
}

// prepareRingWrite turns f.wr into the write of a packet of n bytes to its slot.
func (f *Fabric) prepareRingWrite(l *link, n int) {
	v := &l.remoteRing
	end := v.addr + uint64(v.head+1)*uint64(v.size)
	if v.head++; v.head == v.n {
		v.head = 0
	}
	f.wr[0].Opcode, f.wr[0].RemoteAddr, f.wr[0].RKey = verbs.WRRDMAWrite, end-uint64(n), v.rkey
}

// hasPacket reports whether the next slot has a packet.
func (r *packetRing) hasPacket() bool { return r.mr.LoadUint64(r.last) != 0 }

// pollRings handles the packets in the rings.
func (f *Fabric) pollRings() (some bool) {
	rings := f.rings.Load()
	if rings == nil {
		return false
	}
	for _, r := range *rings {
		for !r.l.failed && r.hasPacket() {
			some = true
			end := r.last + 8
			mem := r.mr.Bytes()
			f.handleRingPacket(r.l, mem[end-r.size:end])
			clear(mem[r.last:end])
			if r.last += r.size; r.last > len(mem) {
				r.last = r.size - 8
			}
		}
	}
	return some
}

// handleRingPacket handles a packet at the end of its slot.
func (f *Fabric) handleRingPacket(l *link, slot []byte) {
	at := len(slot) - envelope.Size
	n := int(binary.LittleEndian.Uint32(slot[at+28:])) // Header.Bytes
	if n > at {
		f.failLink(l, envelope.ErrMalformed)
		return
	}
	f.handlePacket(l, slot[at:], slot[at-n:at], true)
	f.returnCreditsIfDue(l)
}

// hasRingPacket reports whether a ring has a packet.
func (f *Fabric) hasRingPacket() bool {
	for _, r := range *f.rings.Load() {
		if r.hasPacket() {
			return true
		}
	}
	return false
}
