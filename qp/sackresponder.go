package qp

import (
	"slices"
	"unsafe"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// handleInOrder executes the expected request, and then the kept ones that follow it.
func (c *Core) handleInOrder(now reliability.Time, p *wire.Packet) wire.Drop {
	s := c.sel
	before := c.recv.Expected()
	d := c.executeRequest(now, p)
	if s.arrivals.Len() == 0 || c.recv.Expected() == before {
		return d
	}
	for s.arrivals.Len() > 0 && acceptsPackets(c.state) {
		// No request can have a PSN of the response to the last one.
		for p := before.Add(1); p.Less(c.recv.Expected()); p = p.Add(1) {
			s.discard(p)
		}
		if before = c.recv.Expected(); !s.arrivals.Has(before) {
			break
		}
		k := s.kept[before]
		s.discard(before)
		s.pkt = wire.Packet{Src: p.Src, Dst: p.Dst}
		if s.pkt.Parse(k.raw) != wire.DropNone {
			break
		}
		if k.placed > 0 {
			c.completePlaced(now, &s.pkt, k.placed)
		} else {
			c.executeRequest(now, &s.pkt)
		}
		if c.recv.Expected() == before {
			break // rejected, or no receive is posted: the peer sends it again
		}
	}
	c.acks.ScheduleAck(c.recv.Expected().Add(-1), true)
	return d
}

// discard forgets the kept request with PSN p.
func (s *selective) discard(p wire.PSN) {
	if s.arrivals.Remove(p) {
		k := s.kept[p]
		s.keptBytes -= len(k.raw)
		if k.placed > 0 {
			if s.placed--; s.placed == 0 {
				s.extents = s.extents[:0]
			}
		}
		delete(s.kept, p)
	}
}

// A keptRequest is a request packet that arrived ahead of the expected one.
type keptRequest struct {
	raw    []byte // BTH to ICRC; without the payload if that is placed
	placed int    // bytes of payload that are placed, or 0
}

// An extent is memory in which the payload of consecutive writes is placed ahead of time.
type extent struct {
	first, last wire.PSN
	at, end     uintptr
}

// keepRequest keeps a request that is ahead of the expected one until it is in order.
func (c *Core) keepRequest(p *wire.Packet) wire.Drop {
	s, psn, expected := c.sel, p.BTH.PSN, c.recv.Expected()
	if psn.Sub(expected) >= reliability.MaxSpan || !p.LengthFits(int(c.mtu)) || s.keptBytes+len(p.Raw) > maxKeptBytes {
		return wire.DropOutOfSequence
	}
	if isCopy(p) && s.arrivals.Has(psn) {
		return wire.DropDuplicate
	}
	if s.arrivals.Len() == 0 {
		c.counters.OutOfSeqRequest++
		s.urgent = true
	}
	if !s.arrivals.Add(expected, psn) {
		c.counters.DuplicateRequest++
		return wire.DropDuplicate
	}
	if s.kept == nil {
		s.kept = make(map[wire.PSN]keptRequest)
	}
	var k keptRequest
	if k.placed = c.placeAhead(p); k.placed > 0 {
		k.raw = make([]byte, p.Info.HeaderLen+wire.ICRCLen)
		copy(k.raw, p.Raw[:p.Info.HeaderLen])
		k.raw[1] &^= 3 << 4 // no padding
		s.placed++
	} else {
		k.raw = append([]byte(nil), p.Raw...)
	}
	s.kept[psn] = k
	s.keptBytes += len(k.raw)
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
	c.sel.addExtent(c.recv.Expected(), p.BTH.PSN, addressOf(target), len(target))
	return len(target)
}

// addExtent records that the n bytes at an address hold the payload of psn.
func (s *selective) addExtent(expected, psn wire.PSN, at uintptr, n int) {
	if k := len(s.extents); k > 0 {
		if e := &s.extents[k-1]; e.last.Add(1) == psn && e.end == at {
			e.last, e.end = psn, at+uintptr(n)
			return
		}
		if k == cap(s.extents) { // forget those that are in order
			s.extents = slices.DeleteFunc(s.extents, func(e extent) bool { return e.last.Less(expected) })
		}
	}
	s.extents = append(s.extents, extent{psn, psn, at, at + uintptr(n)})
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
	if c.sel == nil || c.sel.placed == 0 || len(dst) == 0 {
		return writeMemory(dst, src)
	}
	from := addressOf(dst)
	keep := [][2]int{{0, len(dst)}} // parts to write
	for _, e := range c.sel.extents {
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
	s.arrivals.Report(expected, &s.ack)
	info := wire.RCSelectiveAck.Info()
	b := out.Next(&c.path, info.HeaderLen+s.ack.Len()+wire.ICRCLen)
	if b == nil {
		s.arrivals.Postpone()
		return false
	}
	s.urgent = false
	syndrome, _ := c.acks.Pop(c.creditCode())
	c.putAETH(now, b, info.Opcode, expected.Add(-1), syndrome, c.recv.MSN())
	s.ack.Put(b[info.HeaderLen:])
	c.counters.SentSacks++
	return true
}

// scheduleSelectiveAck makes an acknowledgement pending if a selective one is due.
func (c *Core) scheduleSelectiveAck() {
	if c.sel != nil && c.sel.arrivals.Due() && !c.acks.NAKPending() {
		c.acks.ScheduleAck(c.recv.Expected().Add(-1), false)
	}
}
