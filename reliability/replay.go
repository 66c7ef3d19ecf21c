package reliability

import "github.com/softrnic/softrnic/wire"

// ReplayWindow is the maximum number of unordered requests that a peer may have
// in flight, and the number of requests that a [Replay] remembers.
const ReplayWindow = 64

// A Replay is the anti-replay window (RFC 4303, section 3.4.3) of a responder.
// It detects repeated requests of a peer whose requests arrive in any order. A
// peer may have requests in flight only if their PSNs differ by less than
// ReplayWindow, so requests older than the window have been answered.
//
// The zero value expects PSN 0 first.
type Replay struct {
	top     wire.PSN // one past the newest executed request
	missing uint64   // bit i: request top-1-i has not been executed
}

// A Freshness classifies a request by its PSN.
type Freshness uint8

const (
	Fresh     Freshness = iota // not executed yet
	Repeated                   // executed; its response may be lost
	Outdated                   // older than the window: answered before
	Premature                  // further ahead than the window permits
)

// Classify classifies a request with the given PSN.
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

// MarkExecuted records that a fresh request has been executed.
func (r *Replay) MarkExecuted(psn wire.PSN) {
	d := psn.Sub(r.top)
	if d < 0 {
		r.missing &^= 1 << uint(-1-d)
		return
	}
	// The window moves. The requests it skips have not been executed.
	r.missing = r.missing<<uint(d+1) | (1<<uint(d+1)-1)&^1
	r.top = psn.Add(1)
}

// SelectiveAck returns the newest executed PSN and a bitmap of the executed
// requests up to it: bit i stands for psn-i. Requests before the first one
// count as executed.
func (r *Replay) SelectiveAck() (psn wire.PSN, done uint64) { return r.top.Add(-1), ^r.missing }
