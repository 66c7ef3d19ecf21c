package qp

import (
	"github.com/softrnic/softrnic/reliability"
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
	if !acceptsPackets(c.state) {
		return wire.DropQPState
	}
	return c.transport.handlePacket(now, p)
}

// recordPacket counts a packet that has passed the checks, and reports whether it met
// congestion on its way (ECN).
func (c *Core) recordPacket(now reliability.Time, p *wire.Packet) (congested bool) {
	c.counters.RcvdPkts++
	c.peerSeen = true
	var syndrome uint8
	if p.Info.AETH {
		syndrome = uint8(p.AETH().Syndrome)
	}
	c.recorder.addPacket(now, false, p.BTH.Opcode, p.BTH.PSN, syndrome)
	if p.TOS&ecnMask != ecnCE && !p.BTH.FECN {
		return false
	}
	c.counters.ECNMarked++
	return true
}

// Deadline returns the time when Advance must be called next, or 0 for never.
func (c *Core) Deadline() reliability.Time { return c.transport.deadline() }

// Advance handles the timers that are due: it ends RNR waits, handles timeouts,
// and makes delayed acknowledgements pending.
func (c *Core) Advance(now reliability.Time) { c.transport.advance(now) }

// pkeyMatch reports whether two partition keys permit communication: same
// partition, which is not partition 0, and at least one full member.
func pkeyMatch(a, b uint16) bool {
	return (a^b)&0x7FFF == 0 && a&0x7FFF != 0 && (a|b)&0x8000 != 0
}
