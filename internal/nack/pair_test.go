package nack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
)

const (
	ms = reliability.Millisecond
	us = reliability.Microsecond
)

// pair is two ends, 0 and 1, that know each other, and a network with a delay of 10 us that loses
// packets as lose decides.
type pair struct {
	t    testing.TB
	now  Time
	end  [2]*Core
	got  [2][]string
	lose func(from int, h *Header) bool
	log  []string
}

func newPair(t testing.TB, o Options) *pair {
	p := &pair{t: t, now: 1 * ms}
	for i := range p.end {
		p.start(i, uint32(7+i), o)
	}
	p.open(0, 8)
	p.open(1, 7)
	return p
}

// start starts an incarnation of an end.
func (p *pair) start(i int, epoch uint32, o Options) {
	o.Self, o.Epoch, o.Peers = uint32(i), epoch, 2
	if o.MTU == 0 {
		o.MTU = minMTU
	}
	p.end[i] = New(o)
}

func (p *pair) open(i int, epoch uint32) { p.end[i].OpenPeer(p.now, 1-i, Peer{Epoch: epoch}) }

func (p *pair) send(from int, message string) {
	require.NoError(p.t, p.end[from].Send(p.now, 1-from, []byte(message), nil))
}

// run runs until no event is due, or at most for d.
func (p *pair) run(d Time) {
	until := p.now + d
	for p.now <= until {
		if p.exchange() {
			p.now += 10 * us
			continue
		}
		next := reliability.Earlier(p.end[0].Deadline(), p.end[1].Deadline())
		if next == 0 {
			return
		}
		p.now = max(p.now, next)
		if p.now > until {
			p.now = until
			return
		}
		for _, c := range p.end {
			c.Advance(p.now)
		}
	}
}

// exchange transfers the pending packets of both ends to the other.
func (p *pair) exchange() (some bool) {
	var out [2][]Packet
	for i, c := range p.end {
		out[i] = make([]Packet, 100)
		out[i] = out[i][:c.Drain(p.now, out[i])]
	}
	for i := range out {
		for k := range out[i] {
			some = true
			p.transfer(i, &out[i][k])
		}
	}
	for i, c := range p.end {
		c.invariants(func(ok bool, format string, args ...any) {
			require.True(p.t, ok, "end %d: %s", i, fmt.Sprintf(format, args...))
		})
	}
	return some
}

func (p *pair) transfer(from int, k *Packet) {
	var h Header
	require.True(p.t, h.Parse(k.Bytes))
	lost := p.lose != nil && p.lose(from, &h)
	line := fmt.Sprintf("%7.3f ms  %c > %c  %s", float64(p.now-1*ms)/ms, 'a'+from, 'b'-from, h.text())
	if lost {
		line += "  LOST"
	} else if d := p.handle(1-from, k.Bytes); d != DropNone {
		line += fmt.Sprintf("  (%v)", d)
	}
	p.log = append(p.log, line)
	p.end[from].ReleaseSlot(k.Slot)
}

func (p *pair) handle(at int, b []byte) Drop {
	return p.end[at].HandlePacket(p.now, 1-at, b, func(m []byte) { p.got[at] = append(p.got[at], string(m)) })
}

func (h *Header) text() string {
	s := fmt.Sprintf("%-5v", h.Kind)
	switch h.Kind {
	case Data:
		s += fmt.Sprintf(" %d", h.Seq)
		if h.Flags&AckRequested != 0 {
			s += ", ack requested"
		}
	case Probe:
		s += fmt.Sprintf(" up to %d", h.Seq)
	case Ack, Nack:
		s += fmt.Sprintf(" %d", h.Ack)
		if h.Sack != 0 {
			s += fmt.Sprintf(" sack %b", h.Sack)
		}
		s += fmt.Sprintf(" echo %d", h.TxEcho)
		return s
	}
	return s + fmt.Sprintf(" (tx %d)", h.TxNum)
}

func (p *pair) events(i int) (list []Event) {
	for e, ok := p.end[i].NextEvent(); ok; e, ok = p.end[i].NextEvent() {
		list = append(list, e)
	}
	return list
}

// loseOnce returns a lose function that loses the first packet for which what is true.
func loseOnce(what func(from int, h *Header) bool) func(int, *Header) bool {
	over := false
	return func(from int, h *Header) bool {
		if over || !what(from, h) {
			return false
		}
		over = true
		return true
	}
}

func (p *pair) requireIdle() {
	p.t.Helper()
	for _, c := range p.end {
		require.NoError(p.t, c.idle())
	}
}
