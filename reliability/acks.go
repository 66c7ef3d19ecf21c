package reliability

import "github.com/softrnic/softrnic/wire"

// An Acks holds the pending acknowledgement of a responder. Acknowledgements
// are cumulative, so at most one is pending: the newest PSN covers all earlier
// ones, and a read or atomic response also acknowledges the requests before it.
type Acks struct {
	pending   bool
	coversEnd bool // the pending acknowledgement covers the last packet of a message
	delayed   bool // there is a delayed acknowledgement, which no packet requested
	nak       bool // the pending packet is a NAK or RNR NAK
	syndrome  wire.Syndrome
	psn       wire.PSN
	endPSN    wire.PSN // PSN of the newest packet that ends a message, if coversEnd
	dueAt     Time     // time when the delayed acknowledgement becomes pending
}

// ScheduleAck schedules an acknowledgement of all packets up to psn. ends
// reports that psn is the last packet of a message, whose completion the peer
// may be waiting for.
func (a *Acks) ScheduleAck(psn wire.PSN, ends bool) {
	if a.nak {
		a.advanceNAK(psn)
		return
	}
	if !a.pending && !a.delayed || a.psn.Less(psn) {
		a.psn = psn
	}
	if ends && (!a.coversEnd || a.endPSN.Less(psn)) {
		a.coversEnd, a.endPSN = true, psn
	}
	a.pending, a.delayed = true, false
}

// ScheduleDelayed schedules a delayed acknowledgement of all packets up to psn,
// which the peer has not requested. It becomes pending at time at, unless
// another packet acknowledges psn earlier.
func (a *Acks) ScheduleDelayed(psn wire.PSN, at Time) {
	if a.pending {
		a.ScheduleAck(psn, false)
		return
	}
	if !a.delayed {
		a.delayed, a.dueAt, a.psn = true, at, psn
	}
	if a.psn.Less(psn) {
		a.psn = psn
	}
}

// Deadline returns the time when the delayed acknowledgement becomes pending,
// or 0.
func (a *Acks) Deadline() Time {
	if !a.delayed {
		return 0
	}
	return a.dueAt
}

// Advance makes a delayed acknowledgement pending if its time has come.
func (a *Acks) Advance(now Time) {
	if a.delayed && now >= a.dueAt {
		a.pending, a.delayed = true, false
	}
}

// ScheduleNAK schedules a NAK or RNR NAK at psn. It replaces a pending
// acknowledgement, which it implies. A sequence NAK does not replace a pending
// NAK of another kind, which carries more information.
func (a *Acks) ScheduleNAK(s wire.Syndrome, psn wire.PSN) {
	if a.nak && s == wire.NakPSNSequence && a.syndrome != wire.NakPSNSequence {
		return
	}
	a.pending, a.delayed, a.nak, a.syndrome, a.psn = true, false, true, s, psn
}

// OnResponseSent records that a read or atomic response at psn is sent. The
// response acknowledges all packets up to psn.
func (a *Acks) OnResponseSent(psn wire.PSN) {
	if a.nak {
		a.advanceNAK(psn)
		return
	}
	if a.psn.LessEq(psn) {
		a.pending, a.delayed = false, false
	}
	a.coversEnd = a.coversEnd && psn.Less(a.endPSN)
}

// advanceNAK moves an unsent sequence NAK past psn, which has arrived in the
// meantime. The packets after the gap were dropped, so the NAK is still due.
func (a *Acks) advanceNAK(psn wire.PSN) {
	if a.syndrome == wire.NakPSNSequence && a.psn.LessEq(psn) {
		a.psn = psn.Add(1)
	}
}

// Pending reports whether an acknowledgement or NAK is pending.
func (a *Acks) Pending() bool { return a.pending }

// NAKPending reports whether a NAK is pending. A NAK is sent without
// coalescing.
func (a *Acks) NAKPending() bool { return a.nak }

// CoversMessageEnd reports whether the pending acknowledgement covers the last
// packet of a message.
func (a *Acks) CoversMessageEnd() bool { return a.coversEnd }

// Pop returns the pending acknowledgement or NAK and clears it. An
// acknowledgement carries the credit code credit in its syndrome.
func (a *Acks) Pop(credit uint8) (s wire.Syndrome, psn wire.PSN) {
	s = wire.AckSyndrome(credit)
	if a.nak {
		s = a.syndrome
	}
	psn = a.psn
	*a = Acks{}
	return s, psn
}
