package nack

import "github.com/softrnic/softrnic/reliability"

// Deadline is when Advance should be called next, 0 if there is no need to. It
// may come up early.
func (c *Core) Deadline() Time {
	if len(c.timers) == 0 {
		return 0
	}
	return c.timers[0].timer.at
}

// Advance does what is due. The caller must have handled the datagrams that had arrived by
// now. The time by which it calls late does not count towards Options.GiveUp: its process did not run.
func (c *Core) Advance(now Time) {
	for p := c.timers.popDue(now); p != nil; p = c.timers.popDue(now) {
		if p.control.ackAt != 0 && p.control.ackAt <= now {
			p.control.ack, p.control.ackAt = true, 0
		}
		switch {
		case p.in.hasPartial() && p.in.lastRecv+Time(c.o.GiveUp) <= now:
			if late := now - p.in.lastRecv - Time(c.o.GiveUp); late > maxProbeInterval {
				p.in.lastRecv += late + maxProbeInterval // the sender asks again by then
				break
			}
			c.failPeer(p)
		case p.out.probeAt != 0 && p.out.probeAt <= now:
			c.onProbeTimer(now, p)
		}
		c.markActive(p)
		c.timers.schedule(p, c.peerDeadline(p))
	}
}

// peerDeadline is when something about a peer is due.
func (c *Core) peerDeadline(p *peer) Time {
	at := reliability.Earlier(p.control.ackAt, p.out.probeAt)
	if p.in.hasPartial() {
		at = reliability.Earlier(at, p.in.lastRecv+Time(c.o.GiveUp))
	}
	return at
}

// failPeer ends what there is with a peer that has taken, or sent, nothing for long.
func (c *Core) failPeer(p *peer) {
	c.Stats.TimedOut++
	c.closePeer(p)
	c.events.Push(Event{Peer: p.number, Kind: TimedOut})
}

// refusedRetries is the number of attempts beside the first that the system may refuse to
// send until a peer is given up, as with retry_cnt 7 of a connection.
const refusedRetries = 7

// OnSendRefused notes that packets to a peer were not sent, or came back by ICMP. Each
// attempt counts once, the next one follows after [reliability.RefusedPause], and any answer
// of the peer makes good for all. Without unanswered packets nothing happens.
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
	c.timers.schedule(p, c.peerDeadline(p))
}

// probeInterval is how long to wait for an answer until the peer is asked, in
// nanoseconds: longer each time.
func (s *sendState) probeInterval() Time {
	return Time(min(min(s.rtt.ProbeTimeout(), maxFirstProbe)<<min(s.probes, 10), maxProbeInterval))
}

// onProbeTimer asks a peer that has not told for long what has come, or gives it up.
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
