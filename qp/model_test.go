package qp

import (
	"fmt"
	"math/rand/v2"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// Layout of a node's region in the property test, in bytes.
const (
	sourceAt  = 0        // constant: sent, written and read data
	exposedAt = 16 << 10 // written, read and modified by the peer's requests
	sinkAt    = 24 << 10 // results of local reads and atomics
	recvAt    = 40 << 10 // receives
	countersN = 8        // words at exposedAt for atomics
	dataAt    = exposedAt + countersN*8
)

// side is one direction of the property test: the requests of one node, and a slow model of their
// effect: plain memory to which they are applied immediately, in the order of posting.
type side struct {
	rng      *rand.Rand
	from, to *node
	model    []byte // of to's memory: exposed part and receives
	results  []byte // of from's memory: sink

	wrs      []verbs.SendWR
	recvs    []verbs.RecvWR
	sends    []string // expected completions of requests, in order
	receives []string // expected completions of receives, in order
	sinkUsed int
	recvUsed int
	unfenced bool // a read of mutable memory may be in flight
}

// newSide draws n requests of from to to and applies them to the model.
func newSide(rng *rand.Rand, from, to *node, n int) *side {
	s := &side{rng: rng, from: from, to: to,
		model: append([]byte{}, to.buf...), results: append([]byte{}, from.buf...), sinkUsed: sinkAt, recvUsed: recvAt}
	for i := range n {
		s.drawRequest(uint64(i), i == n-1)
	}
	return s
}

// size draws a message length: often small, often around the MTU.
func (s *side) size() int {
	mtu := int(s.from.mtu)
	switch s.rng.IntN(4) {
	case 0:
		return s.rng.IntN(65)
	case 1:
		return max(0, mtu*(1+s.rng.IntN(2))-2+s.rng.IntN(5))
	case 2:
		return s.rng.IntN(3 * mtu)
	}
	return s.rng.IntN(mtu)
}

// list divides a range of memory into several elements, some of them empty.
func (s *side) list(n *node, off, length int) []verbs.SGE {
	var l []verbs.SGE
	for i := range 4 {
		k := length
		if i < 3 {
			k = s.rng.IntN(length + 1)
		}
		l = append(l, n.sge(off, k))
		off, length = off+k, length-k
		if length == 0 && s.rng.IntN(2) == 0 {
			break
		}
	}
	return l
}

// drawRequest adds a random request.
func (s *side) drawRequest(id uint64, last bool) {
	ops := []verbs.WROpcode{
		verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWrite, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm,
		verbs.WRRDMARead, verbs.WRRDMARead, verbs.WRAtomicCmpSwap, verbs.WRAtomicFetchAdd, verbs.WRAtomicWrite, verbs.WRFlush,
	}
	wr := verbs.SendWR{WRID: id, Opcode: ops[s.rng.IntN(len(ops))], RKey: s.to.key, Imm: s.rng.Uint32()}
	if last || s.rng.IntN(3) > 0 {
		wr.Flags |= verbs.SendSignaled
	}
	if s.rng.IntN(4) == 0 {
		wr.Flags |= verbs.SendDelayAck
	}
	if s.rng.IntN(10) == 0 {
		wr.Flags |= verbs.SendFence
	}
	n := 8
	switch wr.Opcode {
	case verbs.WRRDMARead:
		n = s.read(&wr)
	case verbs.WRAtomicCmpSwap, verbs.WRAtomicFetchAdd:
		s.atomic(&wr)
	case verbs.WRAtomicWrite:
		s.atomicWrite(&wr)
	case verbs.WRFlush:
		n = s.flush(&wr)
	default:
		n = s.data(&wr)
	}
	if wr.Flags&verbs.SendFence != 0 {
		s.unfenced = wr.Opcode == verbs.WRRDMARead && s.unfenced
	}
	if wr.Flags&verbs.SendSignaled != 0 {
		s.sends = append(s.sends, fmt.Sprintf("%d %v len=%d", id, completionOp[wr.Opcode], n))
	}
	s.wrs = append(s.wrs, wr)
}

// sink allocates n bytes of from's memory for a result.
func (s *side) sink(n int) (off int) {
	off = s.sinkUsed
	if off+n+8 > recvAt {
		off = sinkAt // reused; results arrive in order, and the newest remains
	}
	s.sinkUsed = off + n + s.rng.IntN(8)
	return off
}

// read reads constant memory, or memory that requests modify: then later modifications must be
// fenced, because a retransmitted read would see them.
func (s *side) read(wr *verbs.SendWR) int {
	n := s.size()
	at := sourceAt + s.rng.IntN(exposedAt-n)
	if s.rng.IntN(2) == 0 {
		at = exposedAt + s.rng.IntN(sinkAt-exposedAt-n)
		s.unfenced = true
	}
	off := s.sink(n)
	wr.SGList, wr.RemoteAddr = s.list(s.from, off, n), s.to.base+uint64(at)
	copy(s.results[off:off+n], s.model[at:at+n])
	return n
}

// modifies fences a request that modifies memory of a read in flight.
func (s *side) modifies(wr *verbs.SendWR) {
	if s.unfenced {
		wr.Flags |= verbs.SendFence
	}
}

func (s *side) atomic(wr *verbs.SendWR) {
	s.modifies(wr)
	at := exposedAt + 8*s.rng.IntN(countersN)
	off := s.sink(8)
	wr.SGList, wr.RemoteAddr = []verbs.SGE{s.from.sge(off, 8)}, s.to.base+uint64(at)
	word, _ := atomicWord(s.model[at:])
	copy(s.results[off:off+8], s.model[at:at+8])
	wr.CompareAdd, wr.Swap = s.rng.Uint64(), s.rng.Uint64()
	if wr.Opcode == verbs.WRAtomicFetchAdd {
		*word += wr.CompareAdd
		return
	}
	if s.rng.IntN(3) > 0 {
		wr.CompareAdd = *word
	}
	if *word == wr.CompareAdd {
		*word = wr.Swap
	}
}

func (s *side) atomicWrite(wr *verbs.SendWR) {
	s.modifies(wr)
	from, to := sourceAt+s.rng.IntN(exposedAt-8), exposedAt+8*s.rng.IntN(countersN)
	if s.rng.IntN(2) == 0 {
		wr.Flags, wr.InlineData = wr.Flags|verbs.SendInline, append([]byte{}, s.from.buf[from:from+8]...)
	} else {
		wr.SGList = s.list(s.from, from, 8)
	}
	wr.RemoteAddr = s.to.base + uint64(to)
	copy(s.model[to:to+8], s.from.buf[from:from+8])
}

// flush changes nothing.
func (s *side) flush(wr *verbs.SendWR) int {
	n := s.rng.IntN(sinkAt - exposedAt)
	wr.RemoteAddr = s.to.base + uint64(exposedAt)
	wr.Flush = verbs.Flush{Placement: verbs.FlushGlobal, Selectivity: verbs.FlushSelectivity(s.rng.IntN(2)), Length: uint32(n)}
	return n
}

// data draws a SEND or WRITE, and its receive if it needs one.
func (s *side) data(wr *verbs.SendWR) int {
	n := s.size()
	at := sourceAt + s.rng.IntN(exposedAt-n)
	bytes := s.from.buf[at : at+n]
	if n <= 64 && s.rng.IntN(3) == 0 {
		wr.Flags, wr.InlineData = wr.Flags|verbs.SendInline, append([]byte{}, bytes...)
	} else {
		wr.SGList = s.list(s.from, at, n)
	}
	write := wr.Opcode == verbs.WRRDMAWrite || wr.Opcode == verbs.WRRDMAWriteWithImm
	if write {
		to := dataAt + s.rng.IntN(sinkAt-dataAt-n)
		wr.RemoteAddr = s.to.base + uint64(to)
		if n > 0 {
			s.modifies(wr)
		}
		copy(s.model[to:to+n], bytes)
		if wr.Opcode == verbs.WRRDMAWrite {
			return n
		}
	}
	id := uint64(len(s.recvs))
	room := s.rng.IntN(100)
	if !write {
		room += n
	}
	if s.recvUsed+room > regionBytes {
		s.recvUsed = recvAt // the first ones are complete; the newest remain
	}
	s.recvs = append(s.recvs, verbs.RecvWR{WRID: id, SGList: s.list(s.to, s.recvUsed, room)})
	op, imm := verbs.WCRecvRDMAWithImm, ""
	if !write {
		op = verbs.WCRecv
		copy(s.model[s.recvUsed:s.recvUsed+n], bytes)
	}
	s.recvUsed += room
	if wr.Opcode != verbs.WRSend {
		imm = fmt.Sprintf(" imm=%x", wr.Imm)
	}
	s.receives = append(s.receives, fmt.Sprintf("%d %v len=%d%s", id, op, n, imm))
	return n
}

// post posts several requests and receives, as an application would. It reports whether more
// remain.
func (s *side) post(now reliability.Time) bool {
	if k := min(len(s.wrs), 64-s.from.sq.len(), s.rng.IntN(6)); k > 0 {
		s.from.post(now, s.wrs[:k]...)
		s.wrs = s.wrs[k:]
	}
	for k := s.rng.IntN(4); k > 0 && len(s.recvs) > 0; k-- {
		if s.to.srq != nil {
			if s.to.srq.full() {
				break
			}
			s.to.srq.push(&s.recvs[0])
		} else if _, err := s.to.PostRecv(s.recvs[:1]); err != nil {
			break
		}
		s.recvs = s.recvs[1:]
	}
	return len(s.wrs)+len(s.recvs) > 0
}
