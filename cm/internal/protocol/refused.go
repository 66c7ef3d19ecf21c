package protocol

import (
	"net/netip"
	"slices"
)

// refusedPause is the time until a message that was refused is sent again: a route
// may be changing, or the error be about an earlier process at that address.
const refusedPause = Time(10_000_000)

// Refused notes that a message to the adapter at peer was not sent, or came back, for the
// reason err. What waits for an answer of that peer is sent once more, after 10 ms, and
// ends as if unanswered when that is refused, too.
func (m *Machine) Refused(now Time, peer netip.AddrPort, err error) {
	for _, e := range slices.Clone(m.timers) {
		if !sameAdapter(e.peer, peer) || e.question == nil || e.attemptRefused || !awaitsAnswer(e.state) {
			continue
		}
		again := e.refusal != nil
		e.refusal, e.attemptRefused = err, true
		if again {
			m.giveUp(now, e)
		} else {
			m.timers.set(e, min(e.timed.at, now+refusedPause))
		}
	}
}

// sameAdapter compares addresses, of which one may have a zone and the other none.
func sameAdapter(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && a.Addr().WithZone("") == b.Addr().WithZone("")
}

// awaitsAnswer tells states in which nothing has come of the last message.
func awaitsAnswer(s State) bool {
	return s == StateREQSent || s == StateREPSent || s == StateDREQSent || s == StateSIDRReqSent
}
