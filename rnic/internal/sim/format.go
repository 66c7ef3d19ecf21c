package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// String returns the trace as text.
func (t *Trace) String() string { return t.Text(0, 0) }

// Text returns the trace from line number from on, with times relative to zero:
//
//	0.001 ms  a > b    RC_WRITE_FIRST       psn 100  to 0 len 3000 key b  1024 bytes
//	0.001 ms  a > b    RC_WRITE_MIDDLE      psn 101  1024 bytes  LOST
//	0.002 ms  b > a    RC_ACKNOWLEDGE       psn 101  NAK PSN sequence error, msn 0
//	0.003 ms  a        wc 1: RDMA_WRITE SUCCESS
//
// The time of a packet is its send time. Capitals are effects of the network,
// parentheses have the reason of the receiver for dropping the packet.
func (t *Trace) Text(from int, zero time.Duration) string {
	base := int64(zero) + epoch
	var b strings.Builder
	for i := max(0, from); i < len(t.entries); i++ {
		e := &t.entries[i]
		fmt.Fprintf(&b, "%10.3f ms  ", milliseconds(e.at-base))
		if e.packet == nil {
			fmt.Fprintf(&b, "%-8s %s\n", e.dev.Name(), e.note)
			continue
		}
		b.WriteString(t.formatPacket(e, base))
		b.WriteByte('\n')
	}
	return b.String()
}

// milliseconds converts nanoseconds.
func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }

// formatPacket describes a packet.
func (t *Trace) formatPacket(e *entry, base int64) string {
	from := "?"
	if e.dev != nil {
		from = e.dev.Name()
	}
	dst := t.sim.deviceAt(e.packet.to)
	to := e.packet.to.String()
	var p wire.Packet
	bad := p.Parse(e.packet.raw)
	if dst != nil {
		to = dst.Name()
		if bad == wire.DropNone {
			to = t.qpName(dst, p.BTH.DestQPN)
		}
	}
	s := fmt.Sprintf("%-8s ", from+" > "+to)
	if bad != wire.DropNone {
		s += fmt.Sprintf("%d bytes, not a packet", len(e.packet.raw))
	} else {
		s += t.formatHeaders(e.dev, dst, &p)
	}
	if len(e.packet.copies) == 0 && e.dev.ImpairCounts().Held > 0 {
		return s + "  LOST or delayed"
	}
	return s + e.packet.formatOutcome(base)
}

// qpName returns the name of a queue pair, or its adapter and number.
func (t *Trace) qpName(d *Device, qpn uint32) string {
	if d == nil {
		return fmt.Sprintf("0x%x", qpn)
	}
	if n, ok := t.names[objectName{d, qpn, false}]; ok {
		return n
	}
	return fmt.Sprintf("%s/0x%x", d.Name(), qpn)
}

func (t *Trace) keyName(d *Device, key uint32) string {
	if n, ok := t.names[objectName{d, key, true}]; ok {
		return n
	}
	return fmt.Sprintf("0x%x", key)
}

// formatHeaders writes the headers of a packet.
func (t *Trace) formatHeaders(src, dst *Device, p *wire.Packet) string {
	words := []string{fmt.Sprintf("%-23s psn %d", p.Info.Name, p.BTH.PSN)}
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if p.Info.FETH {
		h := p.FETH()
		add("placement %d selectivity %d", h.Placement, h.Selectivity)
	}
	if p.Info.RETH {
		h := p.RETH()
		add("at %d len %d key %s", h.VA, h.Length, t.keyName(dst, h.RKey))
	}
	if p.Info.AtomicETH {
		h := p.AtomicETH()
		if p.Info.Operation == wire.OpCmpSwap {
			add("at %d compare %d swap %d key %s", h.VA, h.Compare, h.SwapAdd, t.keyName(dst, h.RKey))
		} else {
			add("at %d add %d key %s", h.VA, h.SwapAdd, t.keyName(dst, h.RKey))
		}
	}
	if p.Info.AETH {
		h := p.AETH()
		add("%v, msn %d", h.Syndrome, h.MSN)
	}
	if p.Info.AtomicAckETH {
		add("was %d", p.AtomicAckETH().Orig)
	}
	if p.Info.SackETH {
		add("done %b", p.SackETH().Done)
	}
	if p.Info.DETH {
		h := p.DETH()
		add("qkey 0x%x from %s", h.QKey, t.qpName(src, h.SrcQPN))
	}
	if p.Info.Imm {
		add("imm %d", p.Imm())
	}
	if p.Info.IETH {
		add("invalidates %s", t.keyName(dst, p.IETH().RKey))
	}
	if p.Info.Operation == wire.OpSelectiveAck {
		add("%s", formatSelectiveAck(p.Payload))
	} else if _, most := p.Info.PayloadRange(wire.MaxMTU); most > 0 {
		add("%d bytes", len(p.Payload))
	}
	if p.BTH.More {
		add("more")
	}
	if p.BTH.AckReq && !p.Info.Response {
		add("ackreq")
	}
	if p.BTH.SE {
		add("solicited")
	}
	if p.BTH.PKey != wire.DefaultPKey {
		add("pkey 0x%x", p.BTH.PKey)
	}
	return strings.Join(words, "  ")
}

// formatOutcome describes the fate of a packet, or is empty for an ordinary
// delivery.
func (p *packet) formatOutcome(base int64) string {
	switch len(p.copies) {
	case 0:
		return "  LOST"
	case 1:
		return p.copies[0].formatOutcome(p.sentAt, base)
	}
	s := "  TWICE"
	if n := len(p.copies); n > 2 {
		s = fmt.Sprintf("  %d TIMES", n)
	}
	for i, f := range p.copies {
		if fate := f.formatOutcome(p.sentAt, base); fate != "" {
			s += fmt.Sprintf("  copy %d:%s", i+1, fate[1:])
		}
	}
	return s
}

func (f *packetCopy) formatOutcome(sent, base int64) string {
	s := ""
	if f.left > sent {
		s += fmt.Sprintf("  SENT at %.3f ms", milliseconds(f.left-base))
	}
	if f.damaged {
		s += "  DAMAGED"
	}
	if f.marked {
		s += "  CE"
	}
	switch {
	case f.full:
		s += "  LOST, receive buffer full"
	case f.lost:
		s += "  LOST on arrival"
	case f.verdict != "":
		s += "  (" + f.verdict + ")"
	}
	return s
}

// formatCompletion describes a completion.
func (t *Trace) formatCompletion(d *Device, wc *verbs.WC) string {
	s := fmt.Sprintf("wc %d on %s: ", wc.WRID, t.qpName(d, wc.QPN))
	if wc.Status != verbs.WCSuccess {
		return s + wc.Status.String()
	}
	s += fmt.Sprintf("%v, %d bytes", wc.Opcode, wc.ByteLen)
	if wc.Flags&verbs.WCWithImm != 0 {
		s += fmt.Sprintf(", imm %d", wc.Imm)
	}
	if wc.Flags&verbs.WCWithInv != 0 {
		s += ", invalidated " + t.keyName(d, wc.InvKey)
	}
	if wc.Flags&verbs.WCGRH != 0 {
		s += fmt.Sprintf(", GRH, from qp 0x%x", wc.SrcQPN)
	}
	return s
}

// formatSelectiveAck returns the PSNs that a selective acknowledgement reports.
func formatSelectiveAck(payload []byte) string {
	var s wire.SelectiveAck
	if !s.Parse(payload) {
		return "malformed"
	}
	text := "arrived"
	first, last := wire.PSN(0), wire.PSN(0)
	flush := func() {
		switch {
		case first == last:
		case first.Add(1) == last:
			text += fmt.Sprintf(" %d", first)
		default:
			text += fmt.Sprintf(" %d-%d", first, last.Add(-1))
		}
	}
	for _, b := range s.Blocks {
		for i := range 64 {
			if b.Arrived>>i&1 == 0 {
				continue
			}
			p := b.PSN.Add(i)
			if p != last || first == last {
				flush()
				first = p
			}
			last = p.Add(1)
		}
	}
	flush()
	if s.Duplicates > 0 {
		text += fmt.Sprintf(", duplicates %d", s.Duplicates)
	}
	return text
}
