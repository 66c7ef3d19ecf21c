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

// A program may poll in a loop instead of waiting. The engine records each polled condition
// once between two samples; a condition that is no longer polled is dropped after two samples.
// So the detector knows the time since a condition is polled, probes the ranks that it depends
// on and raises the alarm as for a wait.
//
// A program that polls may compute in between, and then it is not known to be blocked. It
// counts as blocked only if it spends most of its time polling.

// pollTracker tracks the polled conditions of a rank.
type pollTracker struct {
	all       map[any]*pollState     // by engine.PollRecord.Key
	more      bool                   // there are more polls than the engine records
	stats     pollStats              // lately
	schedules map[int]*probeSchedule // liveness probes by rank
}

// pollState is the state of a polled condition.
type pollState struct {
	since  time.Time
	alarm  time.Time      // time of the next alarm; zero is never
	poll   *deadlock.Poll // nil for a nonblocking collective call, whose goroutine waits
	places []uintptr
	missed int // number of samples without the poll
}

// probeSchedule is the schedule of the liveness probes to a rank.
type probeSchedule struct {
	last     time.Time
	interval time.Duration
}

// pollStats is a decaying sum of engine.PollTime: the time inside of tests and between them in
// seconds, and the number of tests and of long gaps.
type pollStats struct{ inside, between, tests, long float64 }

const (
	decay        = 1. / 16                            // share that each sample loses with the next
	testOverhead = float64(20*time.Microsecond) / 1e9 // seconds from one test to the next in a tight loop
)

func (s *pollStats) add(x engine.PollTime) {
	for _, f := range []struct {
		sum *float64
		of  float64
	}{{&s.inside, x.Inside.Seconds()}, {&s.between, x.Between.Seconds()}, {&s.tests, float64(x.Tests)}, {&s.long, float64(x.LongGaps)}} {
		*f.sum += f.of - *f.sum*decay
	}
}

// isBusy reports whether the program computes between its tests: for most of the time, or in
// most of the gaps.
func (s *pollStats) isBusy() bool {
	return s.between > s.inside+s.tests*testOverhead || 2*s.long > s.tests
}

// isReady reports whether the next test will succeed.
func (x *pollState) isReady() bool { return x.poll != nil && x.poll.IsReady() }

// updatePolls records the conditions polled since the last sample. active reports that the
// program has made other calls.
func (d *deadlockDetector) updatePolls(core *protocol.Core, list []engine.PollRecord, more, active bool, now time.Time) {
	p := &d.polls
	p.more = more
	for _, x := range p.all {
		x.missed++
	}
	for _, e := range list {
		x := p.all[e.Key]
		if x == nil {
			x = &pollState{since: now, alarm: now.Add(d.alarm)}
			p.all[e.Key] = x
			d.lastCallAt = now // a call like others
		}
		x.missed, x.places = 0, e.Stack
		x.poll, _ = e.Target.(*deadlock.Poll)
		if x.poll != nil && d.alarm > 0 {
			d.checkPollAlarm(core, x, active, now)
		}
	}
	for key, x := range p.all {
		if x.missed > 1 {
			delete(p.all, key)
		}
	}
	d.probePolledRanks(core, now)
}

// checkPollAlarm raises the alarm for a condition that is polled for too long, and repeats it
// while the program computes in between. A persistent request may have completed in another
// call; so it raises the alarm only after a sample without other calls.
func (d *deadlockDetector) checkPollAlarm(core *protocol.Core, x *pollState, active bool, now time.Time) {
	if x.alarm.IsZero() || now.Before(x.alarm) || x.isReady() || x.poll.Ready == nil && active {
		return
	}
	x.alarm = time.Time{}
	if d.polls.stats.isBusy() {
		x.alarm = now.Add(d.alarm)
	}
	d.raiseAlarm(core, d.alarmReason())
}

// probePolledRanks sends liveness probes to the ranks that polled conditions depend on, with
// exponentially growing intervals.
func (d *deadlockDetector) probePolledRanks(core *protocol.Core, now time.Time) {
	p := &d.polls
	wanted := map[int]bool{}
	for _, x := range p.all {
		if x.poll != nil && d.isDue(now.Sub(x.since), sampleInterval) {
			for _, rank := range x.poll.DependsOn {
				wanted[rank] = rank != d.world.eng.Rank()
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
		if other && n < maxProbes && d.isDue(now.Sub(a.last), a.interval) && core.Backlog(rank) == 0 {
			d.SendPacket(core, rank, envelope.Header{Tag: deadlock.PacketProbe}, nil)
			if !a.last.IsZero() {
				a.interval = min(2*a.interval, d.world.o.maxProbeInterval())
			}
			a.last = now
			p.schedules[rank] = a
			n++
		}
	}
}

// stateOf returns the state of the polled nonblocking call whose goroutine waits in w, or nil.
func (t *pollTracker) stateOf(w engine.Waitable) *pollState {
	if x, ok := w.(deadlock.Background); ok {
		return t.all[x.PollKey()]
	}
	return nil
}

// describeCalls returns the polled conditions as waiting calls, the oldest first. It leaves out
// those in told and merges conditions of which one is enough.
func (t *pollTracker) describeCalls(now time.Time, described map[*pollState]bool) (list []deadlock.Call) {
	for _, x := range t.all {
		if described[x] || x.isReady() {
			continue
		}
		c := deadlock.Call{What: "nonblocking collective call"}
		if x.poll != nil {
			c = x.poll.Call
		}
		c.Polls, c.Busy, c.At, c.Millis = true, t.stats.isBusy(), callerLine(x.places), now.Sub(x.since).Milliseconds()
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b deadlock.Call) int {
		return cmp.Or(cmp.Compare(b.Millis, a.Millis), cmp.Compare(a.What, b.What))
	})
	list = mergeCalls(list)
	if t.more || len(list) > deadlock.MaxListed {
		list = append(list[:min(len(list), deadlock.MaxListed)], deadlock.Call{What: "further calls", Polls: true, Busy: true})
	}
	return list
}

// mergeCalls merges the calls that wait for one rank, or for any of several, into one call.
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

// markPolled makes a polled nonblocking call a call that the program waits for.
func (t *pollTracker) markPolled(c *deadlock.Call, x *pollState) {
	c.Aside, c.Polls, c.Busy, c.At = false, true, t.stats.isBusy(), callerLine(x.places)
}
