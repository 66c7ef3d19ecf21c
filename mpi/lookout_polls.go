package mpi

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A program may ask for something again and again instead of waiting for it. What it
// asks for is noted by the engine, once between two looks, and what is not asked for any
// more is forgotten after two. So the lookout knows since when something is polled, asks
// those that it depends on for signs of life, and raises the alarm, as for those who
// wait.
//
// Whoever polls may do something else in between, and then nobody knows what he is about.
// He counts as one who cannot go on only if he spends most of his time asking.

// pollTracker is what a rank polls.
type pollTracker struct {
	all       map[any]*pollState     // by engine.PollRecord.Key
	more      bool                   // and more than is known
	stats     pollStats              // lately
	schedules map[int]*probeSchedule // for signs of life, by rank
}

// pollState is something that is polled.
type pollState struct {
	since  time.Time
	alarm  time.Time         // when it is raised next; zero is never again
	poll   *unsuccessfulPoll // nil of a call in the background, which tells of itself
	places []uintptr
	missed int // looks since it was asked for
}

// probeSchedule is when a rank was asked for a sign of life.
type probeSchedule struct {
	last     time.Time
	interval time.Duration
}

// pollStats is what a program does with its time, see engine.PollTime: a sum in which a round
// counts less with each that follows.
type pollStats struct{ inside, between, tests, long float64 }

const (
	decay        = 1. / 16                            // what a round loses with each that follows
	testOverhead = float64(20*time.Microsecond) / 1e9 // what it takes to come back from one test to the next
)

func (s *pollStats) add(x engine.PollTime) {
	for _, f := range []struct {
		sum *float64
		of  float64
	}{{&s.inside, x.Inside.Seconds()}, {&s.between, x.Between.Seconds()}, {&s.tests, float64(x.Tests)}, {&s.long, float64(x.LongGaps)}} {
		*f.sum += f.of - *f.sum*decay
	}
}

// isBusy reports whether a program does something between its tests: for most of its
// time, or mostly.
func (s *pollStats) isBusy() bool {
	return s.between > s.inside+s.tests*testOverhead || 2*s.long > s.tests
}

// isReady reports whether the program will find that it is done when it asks again.
func (x *pollState) isReady() bool { return x.poll != nil && x.poll.ready != nil && x.poll.ready() }

// updatePolls takes note of what was polled since the last look, in which other calls
// were made or not.
func (l *deadlockDetector) updatePolls(core *protocol.Core, list []engine.PollRecord, more, active bool, now time.Time) {
	p := &l.polls
	p.more = more
	for _, x := range p.all {
		x.missed++
	}
	for _, e := range list {
		x := p.all[e.Key]
		if x == nil {
			x = &pollState{since: now, alarm: now.Add(l.alarm)}
			p.all[e.Key] = x
			l.lastCallAt = now // a call like others
		}
		x.missed, x.places = 0, e.Stack
		x.poll, _ = e.Target.(*unsuccessfulPoll)
		if x.poll != nil && l.alarm > 0 {
			l.checkPollAlarm(core, x, active, now)
		}
	}
	for key, x := range p.all {
		if x.missed > 1 {
			delete(p.all, key)
		}
	}
	l.probePolledRanks(core, now)
}

// checkPollAlarm raises the alarm for what is polled for too long, and again if the program
// still does something else. Of a persistent request it is not known whether it is over:
// that waits for a look without other calls, one of which may have been its end.
func (l *deadlockDetector) checkPollAlarm(core *protocol.Core, x *pollState, active bool, now time.Time) {
	if x.alarm.IsZero() || now.Before(x.alarm) || x.isReady() || x.poll.ready == nil && active {
		return
	}
	x.alarm = time.Time{}
	if l.polls.stats.isBusy() {
		x.alarm = now.Add(l.alarm)
	}
	l.raiseAlarm(core, l.alarmReason())
}

// probePolledRanks asks the ranks that what is polled depends on for signs of life: soon, and
// then less and less often.
func (l *deadlockDetector) probePolledRanks(core *protocol.Core, now time.Time) {
	p := &l.polls
	wanted := map[int]bool{}
	for _, x := range p.all {
		if x.poll != nil && now.Sub(x.since) >= sampleInterval {
			for _, rank := range x.poll.dependsOn {
				wanted[rank] = rank != l.world.eng.Rank()
			}
		}
	}
	for rank := range p.schedules {
		if !wanted[rank] {
			delete(p.schedules, rank)
		}
	}
	n := 0
	for rank, other := range wanted {
		a := p.schedules[rank]
		if a == nil {
			a = &probeSchedule{interval: sampleInterval}
		}
		if other && n < maxProbes && now.Sub(a.last) >= a.interval && core.Backlog(rank) == 0 {
			l.sendPacket(core, rank, envelope.Header{Tag: packetProbe}, nil)
			if !a.last.IsZero() {
				a.interval = min(2*a.interval, l.world.o.maxProbeInterval())
			}
			a.last = now
			p.schedules[rank] = a
			n++
		}
	}
}

// stateOf is what is known of the poll of a call in the background whose goroutine
// waits, or nil.
func (p *pollTracker) stateOf(w engine.Waitable) *pollState {
	switch x := w.(type) {
	case *callNet:
		return p.all[x.call.background]
	case queueTurn:
		return p.all[x.background]
	}
	return nil
}

// describeCalls is what is polled, as calls of this rank: those of which one is enough
// together, the oldest first. Left out are those of which more is known.
func (p *pollTracker) describeCalls(now time.Time, told map[*pollState]bool) (list []deadlock.Call) {
	for _, x := range p.all {
		if told[x] || x.isReady() {
			continue
		}
		c := deadlock.Call{What: "a call in the background that goes on"}
		if x.poll != nil {
			c = x.poll.Call
		}
		c.Polls, c.Busy, c.At, c.Millis = true, p.stats.isBusy(), callerLine(x.places), now.Sub(x.since).Milliseconds()
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b deadlock.Call) int {
		return cmp.Or(cmp.Compare(b.Millis, a.Millis), cmp.Compare(a.What, b.What))
	})
	list = mergeCalls(list)
	if p.more || len(list) > deadlock.MaxListed {
		list = append(list[:min(len(list), deadlock.MaxListed)], deadlock.Call{What: "more than is told", Polls: true, Busy: true})
	}
	return list
}

// mergeCalls makes one call of those that wait for one rank, or for any of several.
func mergeCalls(list []deadlock.Call) []deadlock.Call {
	var one *deadlock.Call
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

// markPolled makes a call in the background that is polled one that somebody waits
// for.
func (p *pollTracker) markPolled(c *deadlock.Call, x *pollState) {
	c.Aside, c.Polls, c.Busy, c.At = false, true, p.stats.isBusy(), callerLine(x.places)
}
