package reliability

import "github.com/softrnic/softrnic/wire"

// Acks holds the acknowledgement that a responder owes. Acknowledgements are
// cumulative, so there is never more than one: the newest PSN stands for all
// before it, and a read or atomic response stands for an acknowledgement.
type Acks struct {
	owed     bool
	ends     bool // what is owed is for the end of a message, or more: the newest is at ...
	end      wire.PSN
	later    bool // nobody has asked for it: it becomes owed at ...
	at       Time // ... this time
	nak      bool // a NAK or RNR NAK is owed instead, and ends what it follows
	syndrome wire.Syndrome
	psn      wire.PSN
}

// Owe notes that everything up to psn has to be acknowledged. ends tells that psn is the end of
// a message, for which the peer waits.
func (a *Acks) Owe(psn wire.PSN, ends bool) {
	if a.nak {
		a.caughtUp(psn)
		return
	}
	if !a.owed && !a.later || a.psn.Less(psn) {
		a.psn = psn
	}
	if ends && (!a.ends || a.end.Less(psn)) {
		a.ends, a.end = true, psn
	}
	a.owed, a.later = true, false
}

// OweLater notes that everything up to psn has to be acknowledged, but that
// nobody waits for it: at the time at, unless something else does it before.
func (a *Acks) OweLater(psn wire.PSN, at Time) {
	if a.owed {
		a.Owe(psn, false)
		return
	}
	if !a.later {
		a.later, a.at, a.psn = true, at, psn
	}
	if a.psn.Less(psn) {
		a.psn = psn
	}
}

// Deadline is when an acknowledgement becomes owed, or 0.
func (a *Acks) Deadline() Time {
	if !a.later {
		return 0
	}
	return a.at
}

// Advance makes owed what has become so by now.
func (a *Acks) Advance(now Time) {
	if a.later && now >= a.at {
		a.owed, a.later = true, false
	}
}

// OweNAK notes that a NAK or RNR NAK at psn has to be sent. It replaces an
// owed acknowledgement, which it implies. A sequence NAK does not replace any
// other: that one says more.
func (a *Acks) OweNAK(s wire.Syndrome, psn wire.PSN) {
	if a.nak && s == wire.NakPSNSequence && a.syndrome != wire.NakPSNSequence {
		return
	}
	a.owed, a.later, a.nak, a.syndrome, a.psn = true, false, true, s, psn
}

// Covered notes that a response at psn leaves, which acknowledges everything
// up to it.
func (a *Acks) Covered(psn wire.PSN) {
	if a.nak {
		a.caughtUp(psn)
		return
	}
	if a.psn.LessEq(psn) {
		a.owed, a.later = false, false
	}
	a.ends = a.ends && psn.Less(a.end)
}

// caughtUp moves a sequence NAK that has not left behind psn, which has come
// meanwhile: what came after the gap was dropped and is missing still.
func (a *Acks) caughtUp(psn wire.PSN) {
	if a.syndrome == wire.NakPSNSequence && a.psn.LessEq(psn) {
		a.psn = psn.Add(1)
	}
}

// Owed reports whether anything is owed, and Urgent whether it is a NAK,
// which does not wait to be coalesced.
func (a *Acks) Owed() bool   { return a.owed }
func (a *Acks) Urgent() bool { return a.nak }

// Ends reports whether somebody waits for the end of a message, which what is owed acknowledges.
func (a *Acks) Ends() bool { return a.ends }

// Take returns what is owed and settles it. For an acknowledgement the
// syndrome carries the credit code given.
func (a *Acks) Take(credit uint8) (s wire.Syndrome, psn wire.PSN) {
	s = wire.AckSyndrome(credit)
	if a.nak {
		s = a.syndrome
	}
	psn = a.psn
	*a = Acks{}
	return s, psn
}
