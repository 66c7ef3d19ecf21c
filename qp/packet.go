package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// The ECN field of the TOS byte, and its value "congestion experienced" (RFC 3168).
const (
	ecnMask = 3
	ecnCE   = 3
)

// HandlePacket handles a packet addressed to this queue pair, directly or
// through a multicast group. The packet must be parsed and its ICRC checked.
// The result is the reason if the packet was dropped, or DropNone. The memory
// of p is not used after the call.
func (c *Core) HandlePacket(now reliability.Time, p *wire.Packet) wire.Drop {
	if d := c.checkPacket(p); d != wire.DropNone {
		return d
	}
	c.counters.RcvdPkts++
	c.peerSeen = true
	var syndrome uint8
	if p.Info.AETH {
		syndrome = uint8(p.AETH().Syndrome)
	}
	c.recorder.addPacket(now, false, p.BTH.Opcode, p.BTH.PSN, syndrome)
	if p.TOS&ecnMask == ecnCE || p.BTH.FECN {
		c.onCongestionMark(now)
	}
	if c.state == sRTR && !c.established && p.Info.Request && c.class != wire.ClassUD {
		c.established = true
		c.host.Event(verbs.EventCommEst, nil)
	}
	switch {
	case p.Info.Class == wire.ClassCNP:
		c.counters.CNPReceived++
		c.window.OnLoss(now, max(c.rtt.Smoothed(), cnpSpacing))
		return wire.DropNone
	case p.Info.Class == wire.ClassUDX:
		return c.handleRDMA(now, p)
	case c.class == wire.ClassUD:
		return c.handleDatagram(now, p)
	case c.class == wire.ClassUC:
		return c.handleUC(now, p)
	case p.Info.Request:
		return c.handleRequest(now, p)
	case c.state == sRTR:
		return wire.DropQPState
	}
	return c.handleResponse(now, p)
}

// checkPacket performs the checks that apply to all packets of a queue pair.
func (c *Core) checkPacket(p *wire.Packet) wire.Drop {
	switch {
	case !acceptsPackets(c.state):
		return wire.DropQPState
	case p.Info.Class == wire.ClassCNP:
		if c.class == wire.ClassUD {
			return wire.DropWrongTransport
		}
	case p.Info.Class != c.class && (p.Info.Class != wire.ClassUDX || c.rdma == nil):
		return wire.DropWrongTransport
	case !pkeyMatch(p.BTH.PKey, c.pkey):
		return wire.DropBadPKey
	}
	if c.class != wire.ClassUD && p.Src.Addr() != c.path.Dst.Addr() {
		return wire.DropWrongSource
	}
	return wire.DropNone
}

// Deadline returns the time when Advance must be called next, or 0 for never.
func (c *Core) Deadline() reliability.Time {
	if c.rdma != nil {
		return c.rdma.deadline
	}
	if c.typ != verbs.RC || c.state != sRTS && c.state != sSQD {
		return 0
	}
	r, a := c.retry.Deadline(), c.acks.Deadline()
	if r == 0 || a != 0 && a < r {
		return a
	}
	return r
}

// Advance handles the timers that are due: it ends RNR waits, handles timeouts,
// and makes delayed acknowledgements pending.
func (c *Core) Advance(now reliability.Time) {
	if c.rdma != nil {
		c.advanceRDMA(now)
		return
	}
	if c.Deadline() == 0 {
		return // no timer runs in this state
	}
	c.acks.Advance(now)
	if d := c.retry.Deadline(); d == 0 || now < d {
		return
	}
	rnr, refused := c.retry.InRNRWait(), c.retry.WasRefused()
	switch c.retry.OnTimer(now, &c.rtt) {
	case reliability.Probe:
		c.counters.Probes++
		c.forceAckReq, c.probing, c.resume = true, true, c.next
		c.goBack()
		c.probeUnanswered, c.probePSN = !c.sq.wqeAt(c.sq.head).expectsResponse(), c.una
	case reliability.GoBack:
		c.forceAckReq = true
		if !rnr {
			c.cautious = cautiousMessages
			if !refused {
				c.counters.Timeouts++
			}
			c.counters.CompleterRetryErr++
			c.window.OnTimeout(now)
			c.readWindow.OnTimeout(now)
		}
		c.goBack()
	case reliability.GiveUp:
		c.exhaustRetries(now)
	}
}

// pkeyMatch reports whether two partition keys permit communication: same
// partition, which is not partition 0, and at least one full member.
func pkeyMatch(a, b uint16) bool {
	return (a^b)&0x7FFF == 0 && a&0x7FFF != 0 && (a|b)&0x8000 != 0
}
