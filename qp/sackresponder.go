package qp

import (
	"slices"
	"unsafe"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A keptRequests has the requests that arrived ahead of the expected one.
type keptRequests struct {
	pool     *SelectivePool
	arrivals reliability.Arrivals
	requests map[wire.PSN]*keptRequest
	bytes    int // of their packets
	placed   int // number of them whose payload is placed
	most     int // number of them at any time, also of earlier users
	extents  []extent
	pkt      wire.Packet // the one that is executed
}

// A keptRequest is a request packet that arrived ahead of the expected one.
type keptRequest struct {
	raw    []byte // BTH to ICRC; without the payload if that is placed
	placed int    // bytes of payload that are placed, or 0
}

// hasKept reports whether requests have arrived ahead.
func (s *selective) hasKept() bool { return s.kept != nil && s.kept.arrivals.Len() > 0 }

// dropKept forgets the requests that arrived ahead. One of them may be executed now.
func (s *selective) dropKept() {
	s.urgent = false
	if k := s.kept; k != nil {
		for p := range k.requests {
			k.discard(p)
		}
	}
}

// freeKept returns the memory of requests that arrived ahead, unless there are any.
func (s *selective) freeKept() {
	if k := s.kept; k != nil && !s.hasKept() {
		s.kept = nil
		s.pool.freeKept(k)
	}
}

// handleInOrder executes the expected request, and then the kept ones that follow it.
func (c *Core) handleInOrder(now reliability.Time, p *wire.Packet) wire.Drop {
	s := c.sel
	before := c.recv.Expected()
	d := c.executeRequest(now, p)
	if !s.hasKept() || c.recv.Expected() == before {
		return d
	}
	for s.hasKept() && acceptsPackets(c.state) {
		// No request can have a PSN of the response to the last one.
		for p := before.Add(1); p.Less(c.recv.Expected()); p = p.Add(1) {
			s.kept.discard(p)
		}
		before = c.recv.Expected()
		if !s.kept.arrivals.Has(before) || !c.executeKept(now, p, before) {
			break
		}
	}
	s.freeKept()
	c.acks.ScheduleAck(c.recv.Expected().Add(-1), true)
	return d
}

// executeKept executes the kept request psn, which has arrived on the path of p. It reports false if
// that was rejected, or if no receive is posted: then the peer sends it again.
func (c *Core) executeKept(now reliability.Time, p *wire.Packet, psn wire.PSN) bool {
	k := c.sel.kept
	r := k.remove(psn)
	defer k.pool.freePacket(r)
	k.pkt = wire.Packet{Src: p.Src, Dst: p.Dst}
	if k.pkt.Parse(r.raw) != wire.DropNone {
		return false
	}
	if r.placed > 0 {
		c.completePlaced(now, &k.pkt, r.placed)
	} else {
		c.executeRequest(now, &k.pkt)
	}
	return c.recv.Expected() != psn
}

// remove removes the request with PSN p and returns it.
func (k *keptRequests) remove(p wire.PSN) *keptRequest {
	r := k.requests[p]
	k.arrivals.Remove(p)
	delete(k.requests, p)
	k.bytes -= len(r.raw)
	if r.placed > 0 {
		if k.placed--; k.placed == 0 {
			k.extents = k.extents[:0]
		}
	}
	return r
}

// discard forgets the request with PSN p, if there is one.
func (k *keptRequests) discard(p wire.PSN) {
	if k.arrivals.Has(p) {
		k.pool.freePacket(k.remove(p))
	}
}

// An extent is memory in which the payload of consecutive writes is placed ahead of time.
type extent struct {
	first, last wire.PSN
	at, end     uintptr
}

// keepRequest keeps a request that is ahead of the expected one until it is in order.
func (c *Core) keepRequest(p *wire.Packet) wire.Drop {
	s, psn, expected := c.sel, p.BTH.PSN, c.recv.Expected()
	if psn.Sub(expected) >= reliability.MaxSpan || !p.LengthFits(int(c.mtu)) || s.kept != nil && s.kept.bytes+len(p.Raw) > maxKeptBytes {
		return wire.DropOutOfSequence
	}
	if s.kept == nil {
		s.kept = s.pool.allocKept()
		c.counters.OutOfSeqRequest++
		s.urgent = true
	}
	k := s.kept
	if isCopy(p) && k.arrivals.Has(psn) {
		return wire.DropDuplicate
	}
	s.due = true
	if !k.arrivals.Add(expected, psn) {
		s.repeated++
		c.counters.DuplicateRequest++
		return wire.DropDuplicate
	}
	r := s.pool.allocPacket()
	if r.placed = c.placeAhead(p); r.placed > 0 {
		r.raw = append(r.raw[:0], p.Raw[:p.Info.HeaderLen]...)
		r.raw = append(r.raw, make([]byte, wire.ICRCLen)...)
		r.raw[1] &^= 3 << 4 // no padding
		k.placed++
	} else {
		r.raw = append(r.raw[:0], p.Raw...)
	}
	k.requests[psn] = r
	k.most = max(k.most, len(k.requests))
	k.bytes += len(r.raw)
	c.counters.KeptRequests++
	return wire.DropNone
}

// placeAhead stores the payload of a write that is ahead of the expected request, and returns the
// number of bytes, or 0 if the packet must be kept: only one that is not the last of its message can
// be placed, because programs poll the end of a message, and because of its completion. An access
// that is not permitted is not reported before it is in order.
func (c *Core) placeAhead(p *wire.Packet) int {
	if p.Info.Operation != wire.OpWrite || !p.Info.First || !p.Info.Last || p.Info.Imm || !p.BTH.More || len(p.Payload) == 0 ||
		c.attr.AccessFlags&verbs.AccessRemoteWrite == 0 {
		return 0
	}
	h := p.RETH()
	if h.Length != uint32(len(p.Payload)) {
		return 0
	}
	target, f := c.mem.Remote(h.RKey, h.VA, h.Length, verbs.AccessRemoteWrite, c.num)
	if f != NoFault || !c.writeAround(p.BTH.PSN, target, p.Payload) {
		return 0
	}
	c.sel.kept.addExtent(c.recv.Expected(), p.BTH.PSN, addressOf(target), len(target))
	return len(target)
}

// addExtent records that the n bytes at an address hold the payload of psn.
func (k *keptRequests) addExtent(expected, psn wire.PSN, at uintptr, n int) {
	if i := len(k.extents); i > 0 {
		if e := &k.extents[i-1]; e.last.Add(1) == psn && e.end == at {
			e.last, e.end = psn, at+uintptr(n)
			return
		}
		if i == cap(k.extents) { // forget those that are in order
			k.extents = slices.DeleteFunc(k.extents, func(e extent) bool { return e.last.Less(expected) })
		}
	}
	k.extents = append(k.extents, extent{psn, psn, at, at + uintptr(n)})
}

// completePlaced executes the write p, whose n bytes of payload were placed before.
func (c *Core) completePlaced(now reliability.Time, p *wire.Packet, n int) {
	if s, reason := c.checkOrder(p); s != 0 {
		c.rejectRequest(now, p, s, reason)
		return
	}
	m := &c.msg
	if uint32(n) > MaxMessage-m.priorBytes {
		c.rejectRequest(now, p, wire.NakInvalidRequest, "the message is longer than 2^31 bytes")
		return
	}
	c.counters.RcvdBytes += uint64(n)
	c.recv.CompleteMessage()
	m.priorBytes += uint32(n) // it is not the last packet of the message
	c.acceptPacket(now, p)
}

// writeAround stores src, the payload of the write psn, to dst, but for the bytes that later writes
// have stored already. It reports false if the memory cannot be accessed.
func (c *Core) writeAround(psn wire.PSN, dst, src []byte) bool {
	if c.sel == nil || c.sel.kept == nil || c.sel.kept.placed == 0 || len(dst) == 0 {
		return writeMemory(dst, src)
	}
	from := addressOf(dst)
	keep := [][2]int{{0, len(dst)}} // parts to write
	for _, e := range c.sel.kept.extents {
		if !psn.Less(e.first) || e.at >= from+uintptr(len(dst)) || from >= e.end {
			continue
		}
		lo, hi := int(max(e.at, from)-from), int(min(e.end, from+uintptr(len(dst)))-from)
		var rest [][2]int
		for _, r := range keep {
			if r[0] < min(r[1], lo) {
				rest = append(rest, [2]int{r[0], min(r[1], lo)})
			}
			if max(r[0], hi) < r[1] {
				rest = append(rest, [2]int{max(r[0], hi), r[1]})
			}
		}
		keep = rest
	}
	for _, r := range keep {
		if !writeMemory(dst[r[0]:r[1]], src[r[0]:r[1]]) {
			return false
		}
	}
	return true
}

// addressOf returns the address of memory that is not empty.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// sendSelectiveAck builds the pending acknowledgement as a selective one. It reports false if the
// batch is full.
func (c *Core) sendSelectiveAck(now reliability.Time, out Out) bool {
	s := c.sel
	expected := c.recv.Expected()
	ack := &s.pool.ack
	ack.Duplicates, ack.Blocks = s.repeated, ack.Blocks[:0]
	if s.hasKept() {
		s.kept.arrivals.Report(expected, ack)
	}
	info := wire.RCSelectiveAck.Info()
	b := out.Next(&c.path, info.HeaderLen+ack.Len()+wire.ICRCLen)
	if b == nil {
		s.due = true
		return false
	}
	s.due, s.urgent = false, false
	syndrome, _ := c.acks.Pop(c.creditCode())
	c.putAETH(now, b, info.Opcode, expected.Add(-1), syndrome, c.recv.MSN())
	ack.Put(b[info.HeaderLen:])
	c.counters.SentSacks++
	return true
}

// scheduleSelectiveAck makes an acknowledgement pending if a selective one is due.
func (c *Core) scheduleSelectiveAck() {
	if c.sel != nil && c.sel.due && !c.acks.NAKPending() {
		c.acks.ScheduleAck(c.recv.Expected().Add(-1), false)
	}
}
