package protocol

import "net/netip"

// refusedRetryDelay is the delay before a refused message is sent again, 10 ms: the route may be
// changing, or the ICMP error may concern an earlier process at that address.
const refusedRetryDelay = Time(10_000_000)

// HandleRefusal records that a message to the adapter at peer was refused by the system or by
// ICMP, with the cause err. Entries that await a reply from that peer retransmit once more after
// 10 ms, and end as unreachable if that is refused, too.
func (m *Machine) HandleRefusal(now Time, peer netip.AddrPort, err error) {
	for _, e := range m.timers.Objects() {
		if !sameAdapter(e.peer, peer) || e.unanswered == nil || e.attemptRefused || !awaitsReply(e.state) {
			continue
		}
		repeated := e.refusal != nil
		e.refusal, e.attemptRefused = err, true
		if repeated {
			m.giveUp(now, e)
		} else {
			m.timers.Set(&e.timer, e, min(e.timer.At(), now+refusedRetryDelay))
		}
	}
}

// sameAdapter compares addresses without their zones, which may be missing on one side.
func sameAdapter(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && a.Addr().WithZone("") == b.Addr().WithZone("")
}

// awaitsReply reports whether an entry in state s has had no response to its last message.
func awaitsReply(s State) bool {
	return s == StateREQSent || s == StateREPSent || s == StateDREQSent || s == StateSIDRReqSent
}
