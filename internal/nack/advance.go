package nack

import "github.com/softrnic/softrnic/reliability"

// Deadline returns the time when Advance should be called next, or 0. It may be
// earlier than necessary.
func (c *Core) Deadline() Time {
	return c.timers.Next()
}

// Advance handles the timers that are due. The caller must have handled all
// datagrams that arrived by now. The time by which the call is late does not
// count towards Options.GiveUp, because the process did not run.
func (c *Core) Advance(now Time) {
	for p := c.timers.PopDue(now); p != nil; p = c.timers.PopDue(now) {
		if p.control.ackAt != 0 && p.control.ackAt <= now {
			p.control.ack, p.control.ackAt = true, 0
		}
		switch {
		case p.in.hasPartial() && p.in.lastRecv+Time(c.o.GiveUp) <= now:
			if overdue := now - p.in.lastRecv - Time(c.o.GiveUp); overdue > maxProbeInterval {
				p.in.lastRecv += overdue + maxProbeInterval // the sender probes again by then
				break
			}
			c.failPeer(p)
		case p.out.probeAt != 0 && p.out.probeAt <= now:
			c.onProbeTimer(now, p)
		}
		c.markActive(p)
		c.timers.SetEarlier(&p.timer, p, c.peerDeadline(p))
	}
}

// peerDeadline returns the time of p's next timer, or 0.
func (c *Core) peerDeadline(p *peer) Time {
	at := reliability.Earlier(p.control.ackAt, p.out.probeAt)
	if p.in.hasPartial() {
		at = reliability.Earlier(at, p.in.lastRecv+Time(c.o.GiveUp))
	}
	return at
}

// failPeer closes a peer that has acknowledged, or continued, nothing for
// Options.GiveUp.
func (c *Core) failPeer(p *peer) {
	c.Stats.TimedOut++
	c.closePeer(p)
	c.events.Push(Event{Peer: p.number, Kind: TimedOut})
}

// refusedRetries is the number of retries after attempts that the system
// refused to send, as with retry_cnt 7 of a connection. The peer is then given
// up.
const refusedRetries = 7

// OnSendRefused records that the system refused to send packets to a peer, or
// that they were returned by ICMP. Each attempt counts once, the next one
// follows after [reliability.RefusedPause], and any packet of the peer resets
// the count. The call has no effect without unacknowledged packets.
func (c *Core) OnSendRefused(now Time, number int) {
	p := c.getPeer(number)
	s := &p.out
	if p.closed || s.attemptRefused || !s.hasUnacked() && !(p.epoch == 0 && p.blocked) {
		return
	}
	if s.refusals == refusedRetries {
		c.failPeer(p)
		return
	}
	s.attemptRefused = true
	s.refusals++
	s.probeAt = now + reliability.RefusedPause
	c.timers.SetEarlier(&p.timer, p, c.peerDeadline(p))
}

// probeInterval returns the time in nanoseconds after which an unresponsive
// peer is probed. It doubles with each probe.
func (s *sendState) probeInterval() Time {
	return Time(min(min(s.rtt.ProbeTimeout(), maxFirstProbe)<<min(s.probes, 10), maxProbeInterval))
}

// onProbeTimer probes a peer that has not acknowledged packets in time, or
// gives it up.
func (c *Core) onProbeTimer(now Time, p *peer) {
	s := &p.out
	greeting := p.epoch == 0 && p.blocked
	if !s.hasUnacked() && !greeting {
		s.probeAt = 0
		return
	}
	s.lastProgress += now - s.probeAt
	if int64(now-s.lastProgress) >= c.o.GiveUp {
		c.failPeer(p)
		return
	}
	s.attemptRefused = false
	s.probes = min(s.probes+1, 100)
	s.rtt.StopTiming()
	if s.probes == 2 {
		s.window.OnTimeout(now)
	}
	p.control.probe = true
	s.probeAt = now + s.probeInterval()
}
