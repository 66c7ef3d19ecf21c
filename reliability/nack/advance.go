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
	for p := c.timers.due(now); p != nil; p = c.timers.due(now) {
		if p.owe.at != 0 && p.owe.at <= now {
			p.owe.ack, p.owe.at = true, 0
		}
		switch {
		case p.in.halfway() && p.in.last+Time(c.o.GiveUp) <= now:
			if late := now - p.in.last - Time(c.o.GiveUp); late > slowest {
				p.in.last += late + slowest // the sender asks again by then
				break
			}
			c.giveUp(p)
		case p.out.askAt != 0 && p.out.askAt <= now:
			c.expire(now, p)
		}
		c.activate(p)
		c.timers.set(p, c.deadline(p))
	}
}

// deadline is when something about a peer is due.
func (c *Core) deadline(p *peer) Time {
	at := reliability.Earlier(p.owe.at, p.out.askAt)
	if p.in.halfway() {
		at = reliability.Earlier(at, p.in.last+Time(c.o.GiveUp))
	}
	return at
}

// giveUp ends what there is with a peer that has taken, or sent, nothing for long.
func (c *Core) giveUp(p *peer) {
	c.Stats.GivenUp++
	c.close(p)
	c.events.Push(Event{Peer: p.number, Kind: Lost})
}

// refusedRetries is the number of attempts beside the first that the system may refuse to
// send until a peer is given up, as with retry_cnt 7 of a connection.
const refusedRetries = 7

// Refused notes that packets to a peer were not sent, or came back by ICMP. Each
// attempt counts once, the next one follows after [reliability.RefusedPause], and any answer
// of the peer makes good for all. Without unanswered packets nothing happens.
func (c *Core) Refused(now Time, number int) {
	p := c.peer(number)
	s := &p.out
	if p.gone || s.refused || !s.outstanding() && !(p.epoch == 0 && p.waiting) {
		return
	}
	if s.refusals == refusedRetries {
		c.giveUp(p)
		return
	}
	s.refused = true
	s.refusals++
	s.askAt = now + reliability.RefusedPause
	c.timers.set(p, c.deadline(p))
}

// patience is how long to wait for an answer until the peer is asked, in
// nanoseconds: longer each time.
func (s *sending) patience() Time {
	return Time(min(min(s.rtt.ProbeAfter(), patient)<<min(s.asks, 10), slowest))
}

// expire asks a peer that has not told for long what has come, or gives it up.
func (c *Core) expire(now Time, p *peer) {
	s := &p.out
	greeting := p.epoch == 0 && p.waiting
	if !s.outstanding() && !greeting {
		s.askAt = 0
		return
	}
	s.progress += now - s.askAt
	if int64(now-s.progress) >= c.o.GiveUp {
		c.giveUp(p)
		return
	}
	s.refused = false
	s.asks = min(s.asks+1, 100)
	s.rtt.Abandon()
	if s.asks == 2 {
		s.window.Collapsed(now)
	}
	p.owe.ask = true
	s.askAt = now + s.patience()
}
