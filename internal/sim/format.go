package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// String is the whole trace as text.
func (t *Trace) String() string { return t.Text(0, 0) }

// Text is the trace from line number from on, its times counted from zero:
//
//	0.001 ms  a > b    RC_WRITE_FIRST       psn 100  to 0 len 3000 key b  1024 bytes
//	0.001 ms  a > b    RC_WRITE_MIDDLE      psn 101  1024 bytes  LOST
//	0.002 ms  b > a    RC_ACKNOWLEDGE       psn 101  NAK PSN sequence error, msn 0
//	0.003 ms  a        wc 1: RDMA_WRITE SUCCESS
//
// A packet has the time when it was sent. In capitals stands what the network
// did to it, in parentheses why the receiver dropped it.
func (t *Trace) Text(from int, zero time.Duration) string {
	base := int64(zero) + epoch
	var b strings.Builder
	for i := max(0, from); i < len(t.entries); i++ {
		e := &t.entries[i]
		fmt.Fprintf(&b, "%10.3f ms  ", ms(e.at-base))
		if e.packet == nil {
			fmt.Fprintf(&b, "%-8s %s\n", e.dev.Name(), e.note)
			continue
		}
		b.WriteString(t.line(e, base))
		b.WriteByte('\n')
	}
	return b.String()
}

// ms is nanoseconds in milliseconds.
func ms(ns int64) float64 { return float64(ns) / 1e6 }

// line describes a packet.
func (t *Trace) line(e *entry, base int64) string {
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
			to = t.qp(dst, p.BTH.DestQPN)
		}
	}
	s := fmt.Sprintf("%-8s ", from+" > "+to)
	if bad != wire.DropNone {
		s += fmt.Sprintf("%d bytes that are no packet", len(e.packet.raw))
	} else {
		s += t.describe(e.dev, dst, &p)
	}
	if len(e.packet.flights) == 0 && e.dev.Impaired().Held > 0 {
		return s + "  LOST or held back"
	}
	return s + e.packet.fate(base)
}

// qp names a queue pair; one that has no name is its adapter and number.
func (t *Trace) qp(d *Device, qpn uint32) string {
	if d == nil {
		return fmt.Sprintf("0x%x", qpn)
	}
	if n, ok := t.names[name{d, qpn, false}]; ok {
		return n
	}
	return fmt.Sprintf("%s/0x%x", d.Name(), qpn)
}

func (t *Trace) key(d *Device, key uint32) string {
	if n, ok := t.names[name{d, key, true}]; ok {
		return n
	}
	return fmt.Sprintf("0x%x", key)
}

// describe writes the headers of a packet.
func (t *Trace) describe(src, dst *Device, p *wire.Packet) string {
	words := []string{fmt.Sprintf("%-23s psn %d", p.Info.Name, p.BTH.PSN)}
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if p.Info.RETH {
		h := p.RETH()
		add("at %d len %d key %s", h.VA, h.Length, t.key(dst, h.RKey))
	}
	if p.Info.AtomicETH {
		h := p.AtomicETH()
		if p.Info.Operation == wire.OpCmpSwap {
			add("at %d compare %d swap %d key %s", h.VA, h.Compare, h.SwapAdd, t.key(dst, h.RKey))
		} else {
			add("at %d add %d key %s", h.VA, h.SwapAdd, t.key(dst, h.RKey))
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
		add("qkey 0x%x from %s", h.QKey, t.qp(src, h.SrcQPN))
	}
	if p.Info.Imm {
		add("imm %d", p.Imm())
	}
	if p.Info.IETH {
		add("invalidates %s", t.key(dst, p.IETH().RKey))
	}
	if p.Info.Payload != wire.PayloadNone {
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

// fate tells what became of a packet, if that is worth telling.
func (p *packet) fate(base int64) string {
	switch len(p.flights) {
	case 0:
		return "  LOST"
	case 1:
		return p.flights[0].fate(p.sentAt, base)
	}
	s := "  TWICE"
	if n := len(p.flights); n > 2 {
		s = fmt.Sprintf("  %d TIMES", n)
	}
	for i, f := range p.flights {
		if fate := f.fate(p.sentAt, base); fate != "" {
			s += fmt.Sprintf("  copy %d:%s", i+1, fate[1:])
		}
	}
	return s
}

func (f *flight) fate(sent, base int64) string {
	s := ""
	if f.left > sent {
		s += fmt.Sprintf("  LEAVES at %.3f ms", ms(f.left-base))
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

// completion describes a completion.
func (t *Trace) completion(d *Device, wc *verbs.WC) string {
	s := fmt.Sprintf("wc %d on %s: ", wc.WRID, t.qp(d, wc.QPN))
	if wc.Status != verbs.WCSuccess {
		return s + wc.Status.String()
	}
	s += fmt.Sprintf("%v, %d bytes", wc.Opcode, wc.ByteLen)
	if wc.Flags&verbs.WCWithImm != 0 {
		s += fmt.Sprintf(", imm %d", wc.Imm)
	}
	if wc.Flags&verbs.WCWithInv != 0 {
		s += ", invalidated " + t.key(d, wc.InvKey)
	}
	if wc.Flags&verbs.WCGRH != 0 {
		s += fmt.Sprintf(", GRH, from qp 0x%x", wc.SrcQPN)
	}
	return s
}
