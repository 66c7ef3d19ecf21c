package protocol

import (
	"net/netip"
	"slices"
)

// refusedRetryDelay is the time until a message that was refused is sent again: a route
// may be changing, or the error be about an earlier process at that address.
const refusedRetryDelay = Time(10_000_000)

// HandleRefusal notes that a message to the adapter at peer was not sent, or came back, for the
// reason err. What waits for an answer of that peer is sent once more, after 10 ms, and
// ends as if unanswered when that is refused, too.
func (m *Machine) HandleRefusal(now Time, peer netip.AddrPort, err error) {
	for _, e := range slices.Clone(m.timers) {
		if !sameAdapter(e.peer, peer) || e.unanswered == nil || e.attemptRefused || !awaitsReply(e.state) {
			continue
		}
		again := e.refusal != nil
		e.refusal, e.attemptRefused = err, true
		if again {
			m.giveUp(now, e)
		} else {
			m.timers.set(e, min(e.timer.deadline, now+refusedRetryDelay))
		}
	}
}

// sameAdapter compares addresses, of which one may have a zone and the other none.
func sameAdapter(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && a.Addr().WithZone("") == b.Addr().WithZone("")
}

// awaitsReply tells states in which nothing has come of the last message.
func awaitsReply(s State) bool {
	return s == StateREQSent || s == StateREPSent || s == StateDREQSent || s == StateSIDRReqSent
}
