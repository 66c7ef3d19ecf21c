package qp

import (
	"math"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// udRDMA is ud with RDMA over UD, which Core.rdma implements.
type udRDMA struct{ ud }

// postRequest implements transport.
func (t udRDMA) postRequest(wr *verbs.SendWR) error {
	if isRDMA(wr.Opcode) {
		return t.postRDMA(wr)
	}
	return t.ud.postRequest(wr)
}

// hasOutstanding implements transport.
func (t udRDMA) hasOutstanding() bool { return t.rdma.ops > 0 }

// onSendRefused implements transport.
func (t udRDMA) onSendRefused(now reliability.Time, bth wire.BTH, info *wire.Info, refusal *verbs.RefusedError) {
	if info.Class != wire.ClassUDX {
		t.ud.onSendRefused(now, bth, info, refusal)
	} else if info.Request {
		t.rdma.onSendRefused(now, bth, refusal)
	}
}

// handlePacket implements transport.
func (t udRDMA) handlePacket(now reliability.Time, p *wire.Packet) wire.Drop {
	if p.Info.Class != wire.ClassUDX || !pkeyMatch(p.BTH.PKey, t.pkey) {
		return t.ud.handlePacket(now, p)
	}
	t.recordPacket(now, p)
	return t.handleRDMA(now, p)
}

// drain implements transport.
func (t udRDMA) drain(now reliability.Time, out Out) bool {
	return t.sendReplies(now, out) || t.sendRequests(now, out) || t.sendRDMA(now, out)
}

// drainAck implements transport.
func (t udRDMA) drainAck(now reliability.Time, out Out) bool {
	return t.rdma.replies.Len() == 0 && t.sendRDMAAcks(now, out)
}

// hasPendingAck implements transport.
func (t udRDMA) hasPendingAck() bool { return len(t.rdma.ackPeers) > 0 }

// expireDelayedAck implements transport.
func (t udRDMA) expireDelayedAck() { t.rdma.scheduleDueAcks(math.MaxInt64) }

// deadline and advance implement transport.
func (t udRDMA) deadline() reliability.Time   { return t.rdma.deadline }
func (t udRDMA) advance(now reliability.Time) { t.advanceRDMA(now) }

// flush implements transport: it completes all operations with WCWRFlushErr.
func (t udRDMA) flush() {
	for len(t.rdma.busy) > 0 {
		t.rdma.busy[0].failAll(verbs.WCWRFlushErr, flushed)
	}
}

// reset implements transport: it removes all peers, and all operations without completing
// them.
func (t udRDMA) reset() {
	for _, p := range t.rdma.peers {
		p.closed = true
	}
	t.Core.rdma = newRDMA(t.rdma.maxOps)
}

// onSendRefused records a refused request packet to an RDMA peer.
func (r *rdma) onSendRefused(now reliability.Time, bth wire.BTH, refusal *verbs.RefusedError) {
	for _, p := range r.busy {
		if p.qpn == bth.DestQPN && p.path.Dst.Addr().WithZone("") == refusal.Peer.Addr().WithZone("") && p.findInFlight(bth.PSN) != nil {
			p.onRequestRefused(now, refusal)
			return
		}
	}
}

// refusedRetries is the number of retries after attempts that the system
// refused to send, as with retry_cnt 7. The operations to the peer then fail.
const refusedRetries = 7

// onRequestRefused counts each refused attempt once.
func (p *Peer) onRequestRefused(now reliability.Time, refusal *verbs.RefusedError) {
	p.lastRefusal = refusal
	if refusal.Transient() || p.attemptRefused {
		return
	}
	if p.refusals++; p.refusals > refusedRetries {
		p.core.counters.RetryExceededErr++
		f := refusal.Failure()
		f.PSN, f.Retries = uint32(p.una), refusedRetries
		p.failAll(verbs.WCRetryExcErr, f)
		return
	}
	p.attemptRefused = true
	p.deadline = now + reliability.RefusedPause
	p.core.rdma.deadline = reliability.Earlier(p.core.rdma.deadline, p.deadline)
}
