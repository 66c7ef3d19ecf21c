package mpi

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/mpi/engine"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/hang"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// A program may ask for something again and again instead of waiting for it. What it
// asks for is noted by the engine, once between two looks, and what is not asked for any
// more is forgotten after two. So the lookout knows since when something is polled, asks
// those that it depends on for signs of life, and raises the alarm, as for those who
// wait.
//
// Whoever polls may do something else in between, and then nobody knows what he is about.
// He counts as one who cannot go on only if he spends most of his time asking.

// polling is what a rank polls.
type polling struct {
	all   map[any]*polled // by engine.Poll.Key
	more  bool            // and more than is known
	spent spent           // lately
	asked map[int]*asking // for signs of life, by rank
}

// polled is something that is polled.
type polled struct {
	since  time.Time
	alarm  time.Time // when it is raised next; zero is never again
	what   *inVain   // nil of a call in the background, which tells of itself
	places []uintptr
	missed int // looks since it was asked for
}

// asking is when a rank was asked for a sign of life.
type asking struct {
	last  time.Time
	pause time.Duration
}

// spent is what a program does with its time, see engine.Spent: a sum in which a round
// counts less with each that follows.
type spent struct{ inside, between, tests, long float64 }

const (
	fading = 1. / 16                            // what a round loses with each that follows
	nought = float64(20*time.Microsecond) / 1e9 // what it takes to come back from one test to the next
)

func (s *spent) add(x engine.Spent) {
	for _, f := range []struct {
		sum *float64
		of  float64
	}{{&s.inside, x.Inside.Seconds()}, {&s.between, x.Between.Seconds()}, {&s.tests, float64(x.Tests)}, {&s.long, float64(x.Long)}} {
		*f.sum += f.of - *f.sum*fading
	}
}

// works reports whether a program does something between its tests: for most of its
// time, or mostly.
func (s *spent) works() bool { return s.between > s.inside+s.tests*nought || 2*s.long > s.tests }

// over reports whether the program will find that it is done when it asks again.
func (x *polled) over() bool { return x.what != nil && x.what.over != nil && x.what.over() }

// lookAtPolls takes note of what was polled since the last look, in which other calls
// were made or not.
func (l *lookout) lookAtPolls(core *protocol.Core, list []engine.Poll, more, active bool, now time.Time) {
	p := &l.polls
	p.more = more
	for _, x := range p.all {
		x.missed++
	}
	for _, e := range list {
		x := p.all[e.Key]
		if x == nil {
			x = &polled{since: now, alarm: now.Add(l.alarm)}
			p.all[e.Key] = x
			l.changed = now // a call like others
		}
		x.missed, x.places = 0, e.Places
		x.what, _ = e.What.(*inVain)
		if x.what != nil && l.alarm > 0 {
			l.alarmPolled(core, x, active, now)
		}
	}
	for key, x := range p.all {
		if x.missed > 1 {
			delete(p.all, key)
		}
	}
	l.askPolled(core, now)
}

// alarmPolled raises the alarm for what is polled for too long, and again if the program
// still does something else. Of a persistent request it is not known whether it is over:
// that waits for a look without other calls, one of which may have been its end.
func (l *lookout) alarmPolled(core *protocol.Core, x *polled, active bool, now time.Time) {
	if x.alarm.IsZero() || now.Before(x.alarm) || x.over() || x.what.over == nil && active {
		return
	}
	x.alarm = time.Time{}
	if l.polls.spent.works() {
		x.alarm = now.Add(l.alarm)
	}
	l.raise(core, l.urgency())
}

// askPolled asks the ranks that what is polled depends on for signs of life: soon, and
// then less and less often.
func (l *lookout) askPolled(core *protocol.Core, now time.Time) {
	p := &l.polls
	wanted := map[int]bool{}
	for _, x := range p.all {
		if x.what != nil && l.isDue(now.Sub(x.since), lookTime) {
			for _, rank := range x.what.ask {
				wanted[rank] = rank != l.w.eng.Rank()
			}
		}
	}
	for rank := range p.asked {
		if !wanted[rank] {
			delete(p.asked, rank)
		}
	}
	n := 0
	for rank, other := range wanted {
		a := p.asked[rank]
		if a == nil {
			a = &asking{pause: lookTime}
		}
		if other && n < maxSigns && l.isDue(now.Sub(a.last), a.pause) && core.Backlog(rank) == 0 {
			l.tell(core, rank, envelope.Header{Tag: packetSign}, nil)
			if !a.last.IsZero() {
				a.pause = min(2*a.pause, l.w.o.maxPause())
			}
			a.last = now
			p.asked[rank] = a
			n++
		}
	}
}

// of is what is known of the poll of a call in the background whose goroutine
// waits, or nil.
func (p *polling) of(w engine.Waitable) *polled {
	switch x := w.(type) {
	case *net:
		return p.all[x.call.work]
	case turn:
		return p.all[x.work]
	}
	return nil
}

// calls is what is polled, as calls of this rank: those of which one is enough
// together, the oldest first. Left out are those of which more is known.
func (p *polling) calls(now time.Time, told map[*polled]bool) (list []hang.Call) {
	for _, x := range p.all {
		if told[x] || x.over() {
			continue
		}
		c := hang.Call{What: "a call in the background that goes on"}
		if x.what != nil {
			c = x.what.Call
		}
		c.Polls, c.Busy, c.At, c.Millis = true, p.spent.works(), caller(x.places), now.Sub(x.since).Milliseconds()
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b hang.Call) int { return cmp.Or(cmp.Compare(b.Millis, a.Millis), cmp.Compare(a.What, b.What)) })
	list = joined(list)
	if p.more || len(list) > hang.MaxListed {
		list = append(list[:min(len(list), hang.MaxListed)], hang.Call{What: "more than is told", Polls: true, Busy: true})
	}
	return list
}

// joined makes one call of those that wait for one rank, or for any of several.
func joined(list []hang.Call) []hang.Call {
	var one *hang.Call
	more := 0
	kept := list[:0]
	for _, c := range list {
		switch {
		case !c.Any && len(c.For) != 1:
			kept = append(kept, c)
		case one == nil:
			kept = append(kept, c)
			one = &kept[len(kept)-1]
		default:
			more++
			one.For = slices.Concat(one.For, c.For)
			one.Any, one.Why = true, ""
			one.Unmet = one.Unmet && c.Unmet
		}
	}
	if more > 0 {
		one.What += fmt.Sprintf(" and %d more", more)
		slices.Sort(one.For)
		one.For = slices.Compact(one.For)
	}
	return kept
}

// inBackground makes a call in the background that is polled one that somebody waits
// for.
func (p *polling) inBackground(c *hang.Call, x *polled) {
	c.Aside, c.Polls, c.Busy, c.At = false, true, p.spent.works(), caller(x.places)
}
