package reliability

import "github.com/softrnic/softrnic/wire"

// Acks holds the acknowledgement that a responder owes. Acknowledgements are
// cumulative, so there is never more than one: the newest PSN stands for all
// before it, and a read or atomic response stands for an acknowledgement.
type Acks struct {
	owed     bool
	nak      bool // a NAK or RNR NAK is owed instead, and ends what it follows
	syndrome wire.Syndrome
	psn      wire.PSN
}

// Owe notes that everything up to psn has to be acknowledged.
func (a *Acks) Owe(psn wire.PSN) {
	if a.nak {
		a.caughtUp(psn)
		return
	}
	if a.owed && psn.Less(a.psn) {
		return
	}
	a.owed, a.psn = true, psn
}

// OweNAK notes that a NAK or RNR NAK at psn has to be sent. It replaces an
// owed acknowledgement, which it implies. A sequence NAK does not replace any
// other: that one says more.
func (a *Acks) OweNAK(s wire.Syndrome, psn wire.PSN) {
	if a.nak && s == wire.NakPSNSequence && a.syndrome != wire.NakPSNSequence {
		return
	}
	a.owed, a.nak, a.syndrome, a.psn = true, true, s, psn
}

// Covered notes that a response at psn leaves, which acknowledges everything
// up to it.
func (a *Acks) Covered(psn wire.PSN) {
	if a.nak {
		a.caughtUp(psn)
		return
	}
	if a.owed && a.psn.LessEq(psn) {
		a.owed = false
	}
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
