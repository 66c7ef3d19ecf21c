package impair

import (
	"net/netip"
	"sync/atomic"

	"github.com/softrnic/softrnic/wire"
)

// An effect is the combined effect of the rules on a packet.
type effect struct {
	drop, duplicate, corrupt, corruptICRC, mark bool
	delay                                       int64 // nanoseconds
}

// rules are the active rules of one direction.
type rules struct {
	list   []*activeRule
	random random
	first  map[stream]wire.PSN // first PSN seen; nil unless a rule needs it
}

type activeRule struct {
	Rule
	selector         *selector
	matched, applied atomic.Uint64
}

// A stream is the scope of relative PSNs.
type stream struct {
	peer     netip.AddrPort
	qpn      uint32
	response bool
}

// maxStreams bounds the memory for relative PSNs: inbound packets may name any
// QPN. Further streams match no relative PSN.
const maxStreams = 1 << 16

// newRules returns the rules of the valid Spec for the given direction.
func newRules(s *Spec, d Direction, random random) rules {
	r := rules{random: random}
	for _, rule := range s.Rules {
		if rule.Match.Direction != d {
			continue
		}
		selector, _ := lookupSelector(rule.Match.Packets)
		r.list = append(r.list, &activeRule{Rule: rule, selector: selector})
		if rule.Match.PSN.kind == relativePSN && r.first == nil {
			r.first = make(map[stream]wire.PSN)
		}
	}
	return r
}

// apply applies all rules to a packet, BTH to ICRC. peer is its source or
// destination.
func (r *rules) apply(peer netip.AddrPort, pkt []byte) (e effect) {
	if len(pkt) < wire.MinPacketLen {
		return e
	}
	bth := wire.ParseBTH(pkt)
	first, known := r.firstPSN(peer, &bth)
	for _, rule := range r.list {
		if !rule.matches(&bth, pkt, first, known) {
			continue
		}
		if !rule.When.selects(rule.matched.Add(1), &r.random) {
			continue
		}
		rule.applied.Add(1)
		switch rule.Action.Kind {
		case Drop:
			e.drop = true
		case Duplicate:
			e.duplicate = true
		case HoldBack:
			e.delay += int64(rule.Action.Delay)
		case Corrupt:
			e.corrupt = true
		case CorruptICRC:
			e.corruptICRC = true
		case MarkECN:
			e.mark = true
		}
	}
	return e
}

// firstPSN returns the first PSN of the packet's stream, which may be its own.
func (r *rules) firstPSN(peer netip.AddrPort, bth *wire.BTH) (first wire.PSN, known bool) {
	if r.first == nil {
		return 0, false
	}
	s := stream{peer, bth.DestQPN, bth.Opcode.Info().Response}
	first, known = r.first[s]
	if !known && len(r.first) < maxStreams {
		first, known = bth.PSN, true
		r.first[s] = first
	}
	return first, known
}

// matches reports whether Match describes the packet; first is the first PSN
// of its stream, if known.
func (r *activeRule) matches(bth *wire.BTH, pkt []byte, first wire.PSN, known bool) bool {
	m := &r.Match
	if m.QPN != 0 && m.QPN != bth.DestQPN || !r.selector.matches(pkt) {
		return false
	}
	switch m.PSN.kind {
	case absolutePSN:
		return bth.PSN == m.PSN.value
	case relativePSN:
		return known && bth.PSN == first.Add(int(m.PSN.value))
	}
	return true
}

// selects reports whether the n-th matching packet, n from 1, is selected.
func (w *When) selects(n uint64, r *random) bool {
	switch {
	case w.Nth != 0:
		return n == uint64(w.Nth)
	case w.Every != 0:
		return n%uint64(w.Every) == 0
	case w.First != 0:
		return n <= uint64(w.First)
	case w.P != 0:
		return r.happens(w.P)
	}
	return true
}
