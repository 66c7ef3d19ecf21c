package reliability

import "github.com/softrnic/softrnic/wire"

// ReplayWindow is how many requests a peer may have under way without an order among
// them, and so how many the one that carries them out has to remember.
const ReplayWindow = 64

// Replay is what a responder remembers of a peer's requests that come in any order,
// more than once or not at all: an anti-replay window (RFC 4303, 3.4.3). The peer has
// requests under way only whose PSNs are less than ReplayWindow apart, so that what is
// older than the window has been answered, and what comes of it comes late.
//
// The zero value expects PSN 0 first.
type Replay struct {
	top     wire.PSN // one past the newest that has been carried out
	missing uint64   // of the window before top: bit i says that top-1-i has not been
}

// Freshness is what Replay knows of a request.
type Freshness uint8

const (
	Fresh     Freshness = iota // not carried out yet
	Repeated                   // carried out: its answer may be lost
	Outdated                   // answered long ago
	Premature                  // further ahead than a peer may be
)

// Classify says what a request with this PSN is.
func (r *Replay) Classify(psn wire.PSN) Freshness {
	switch d := psn.Sub(r.top); {
	case d >= ReplayWindow:
		return Premature
	case d >= 0:
		return Fresh
	case d < -ReplayWindow:
		return Outdated
	case r.missing&(1<<uint(-1-d)) != 0:
		return Fresh
	}
	return Repeated
}

// MarkExecuted notes that a fresh request has been carried out.
func (r *Replay) MarkExecuted(psn wire.PSN) {
	d := psn.Sub(r.top)
	if d < 0 {
		r.missing &^= 1 << uint(-1-d)
		return
	}
	// The window moves; what it takes in between has not been carried out.
	r.missing = r.missing<<uint(d+1) | (1<<uint(d+1)-1)&^1
	r.top = psn.Add(1)
}

// SelectiveAck is the newest PSN that has been carried out, and which of the window up to it
// have been: bit i is for the one i before. Of requests before the first it says that
// they have.
func (r *Replay) SelectiveAck() (psn wire.PSN, done uint64) { return r.top.Add(-1), ^r.missing }
