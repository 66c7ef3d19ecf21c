package reliability

import "github.com/softrnic/softrnic/wire"

// Acks holds the acknowledgement that a responder owes. Acknowledgements are
// cumulative, so there is never more than one: the newest PSN stands for all
// before it, and a read or atomic response stands for an acknowledgement.
type Acks struct {
	pending   bool
	coversEnd bool // what is owed is for the end of a message, or more: the newest is at ...
	endPSN    wire.PSN
	delayed   bool // nobody has asked for it: it becomes owed at ...
	dueAt     Time // ... this time
	nak       bool // a NAK or RNR NAK is owed instead, and ends what it follows
	syndrome  wire.Syndrome
	psn       wire.PSN
}

// ScheduleAck notes that everything up to psn has to be acknowledged. ends tells that psn is the end of
// a message, for which the peer waits.
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

// ScheduleDelayed notes that everything up to psn has to be acknowledged, but that
// nobody waits for it: at the time at, unless something else does it before.
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

// Deadline is when an acknowledgement becomes owed, or 0.
func (a *Acks) Deadline() Time {
	if !a.delayed {
		return 0
	}
	return a.dueAt
}

// Advance makes owed what has become so by now.
func (a *Acks) Advance(now Time) {
	if a.delayed && now >= a.dueAt {
		a.pending, a.delayed = true, false
	}
}

// ScheduleNAK notes that a NAK or RNR NAK at psn has to be sent. It replaces an
// owed acknowledgement, which it implies. A sequence NAK does not replace any
// other: that one says more.
func (a *Acks) ScheduleNAK(s wire.Syndrome, psn wire.PSN) {
	if a.nak && s == wire.NakPSNSequence && a.syndrome != wire.NakPSNSequence {
		return
	}
	a.pending, a.delayed, a.nak, a.syndrome, a.psn = true, false, true, s, psn
}

// OnResponseSent notes that a response at psn leaves, which acknowledges everything
// up to it.
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

// advanceNAK moves a sequence NAK that has not left behind psn, which has come
// meanwhile: what came after the gap was dropped and is missing still.
func (a *Acks) advanceNAK(psn wire.PSN) {
	if a.syndrome == wire.NakPSNSequence && a.psn.LessEq(psn) {
		a.psn = psn.Add(1)
	}
}

// Pending reports whether anything is owed, and Urgent whether it is a NAK,
// which does not wait to be coalesced.
func (a *Acks) Pending() bool    { return a.pending }
func (a *Acks) NAKPending() bool { return a.nak }

// CoversMessageEnd reports whether somebody waits for the end of a message, which what is owed acknowledges.
func (a *Acks) CoversMessageEnd() bool { return a.coversEnd }

// Pop returns what is owed and settles it. For an acknowledgement the
// syndrome carries the credit code given.
func (a *Acks) Pop(credit uint8) (s wire.Syndrome, psn wire.PSN) {
	s = wire.AckSyndrome(credit)
	if a.nak {
		s = a.syndrome
	}
	psn = a.psn
	*a = Acks{}
	return s, psn
}
