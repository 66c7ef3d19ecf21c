package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A transport is the part of a Core that depends on the type of the queue pair. There are
// five: rc, stream (RC over TCP), uc, ud (also of GSI) and udRDMA, which is ud with RDMA over UD. New chooses one;
// no other code looks at the type, but for the tables of states and opcodes in state.go.
type transport interface {
	// postRequest queues a request.
	postRequest(wr *verbs.SendWR) error
	// mayStart reports whether the first packet of w may be sent.
	mayStart(w *sendWQE) bool
	// sendPacket builds the packet of w at next, and advances past it.
	sendPacket(now reliability.Time, out Out, w *sendWQE) outcome
	// onSendRefused records a packet of the transport that the system refused to send.
	onSendRefused(now reliability.Time, bth wire.BTH, info *wire.Info, refusal *verbs.RefusedError)
	// inFlight returns the number of bytes sent and not acknowledged.
	inFlight() int
	// hasOutstanding reports whether requests outside of the send queue are outstanding.
	hasOutstanding() bool

	// handlePacket checks a packet, records it and handles it.
	handlePacket(now reliability.Time, p *wire.Packet) wire.Drop

	// drain, drainAck, hasPendingAck, expireDelayedAck, deadline and advance implement
	// the methods of Core.
	drain(now reliability.Time, out Out) bool
	drainAck(now reliability.Time, out Out) bool
	hasPendingAck() bool
	expireDelayedAck()
	deadline() reliability.Time
	advance(now reliability.Time)

	// configure applies the attributes that the transition to RTS has set.
	configure()
	// afterFailure enters the state that follows a failed request.
	afterFailure(now reliability.Time)
	// flush completes the requests outside of the send queue with WCWRFlushErr, and reset
	// discards them.
	flush()
	reset()
}

// An outcome is the result of an attempt to send the next packet.
type outcome uint8

const (
	sent    outcome = iota
	blocked         // waits for an acknowledgement, a credit or a timer
	full            // the batch is full
)

// An unreliable is the common part of UC and UD: no acknowledgements, timers and credits. A
// request is complete when its packets were sent.
type unreliable struct{ *Core }

func (t unreliable) mayStart(*sendWQE) bool              { return true }
func (t unreliable) inFlight() int                       { return 0 }
func (t unreliable) hasOutstanding() bool                { return false }
func (t unreliable) drainAck(reliability.Time, Out) bool { return false }
func (t unreliable) hasPendingAck() bool                 { return false }
func (t unreliable) expireDelayedAck()                   {}
func (t unreliable) deadline() reliability.Time          { return 0 }
func (t unreliable) advance(reliability.Time)            {}
func (t unreliable) configure()                          {}
func (t unreliable) flush()                              {}
func (t unreliable) reset()                              {}

// onPacketSent advances past a packet of w that was built. After the last one w is complete.
func (t unreliable) onPacketSent(now reliability.Time, w *sendWQE, op wire.Opcode) {
	t.advancePast(now, w, op, 1, false)
	if !w.last.Less(t.next) {
		return
	}
	t.una = t.next
	if !t.confirmSends {
		t.completeHead(w)
		t.checkDrained()
	}
}

// onSendRefused implements transport.
func (t unreliable) onSendRefused(_ reliability.Time, bth wire.BTH, info *wire.Info, refusal *verbs.RefusedError) {
	if info.Class == t.class && info.Request && !refusal.Transient() && !refusal.ICMP {
		t.unsent = append(t.unsent, unsentPacket{bth.PSN, refusal})
	}
}

// afterFailure implements transport: a request fails only locally.
func (t unreliable) afterFailure(now reliability.Time) {
	t.setState(now, sSQE)
	t.flushSends(now)
}

// postConnected implements transport.postRequest of a queue pair that has a peer (RC, UC).
func (c *Core) postConnected(wr *verbs.SendWR) error {
	n, err := c.checkRequest(wr)
	if err != nil {
		return err
	}
	return c.queueRequest(wr, n, nil)
}

// checkConnected performs the checks of a packet to a queue pair that has a peer (RC, UC).
func (c *Core) checkConnected(p *wire.Packet) wire.Drop {
	switch {
	case p.Info.Class == wire.ClassCNP:
	case p.Info.Class != c.class:
		return wire.DropWrongTransport
	case !pkeyMatch(p.BTH.PKey, c.pkey):
		return wire.DropBadPKey
	}
	if p.Src.Addr() != c.path.Dst.Addr() {
		return wire.DropWrongSource
	}
	return wire.DropNone
}

// handleConnected records a packet from a peer and handles its congestion mark, and congestion
// notifications. It reports whether the packet is one of these.
func (c *Core) handleConnected(now reliability.Time, p *wire.Packet) (done bool) {
	if c.recordPacket(now, p) && (c.cnpLast == 0 || now-c.cnpLast >= cnpSpacing) {
		c.cnpDue, c.cnpLast = true, now
	}
	if c.state == sRTR && !c.established && p.Info.Request {
		c.established = true
		c.host.Event(verbs.EventCommEst, nil)
	}
	if p.Info.Class != wire.ClassCNP {
		return false
	}
	c.onNotification(now)
	return true
}
