package detector

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

// A program may poll in a loop instead of waiting. The engine records each polled condition once
// between two samples, and the detector treats it as a wait: it knows the time since the
// condition is polled, probes the ranks that it depends on and raises the alarm.
//
// A program that polls may compute in between, and then it is not known to be blocked. It
// counts as blocked only if its tests follow one another closely.

// polls are the polled conditions among the waits.
type polls struct {
	*waits
	stats  pollStats
	probes probeSchedule
	more   bool // there are more polls than the engine records
}

// pollStats is a decaying sum of engine.PollTime, in seconds and tests.
type pollStats struct{ total, inside, tests float64 }

const (
	statsDecay = 1. / 16               // share that each sample loses with the next
	maxPollGap = 20 * time.Microsecond // from one test to the next, on average, without other work in between
)

// addRound adds a round. A round without tests starts anew.
func (s *pollStats) addRound(x engine.PollTime) {
	if x.Tests == 0 {
		*s = pollStats{}
		return
	}
	s.total += x.Total.Seconds() - s.total*statsDecay
	s.inside += x.Inside.Seconds() - s.inside*statsDecay
	s.tests += float64(x.Tests) - s.tests*statsDecay
}

// isBusy reports whether the program computes between its tests.
func (s *pollStats) isBusy() bool { return s.total-s.inside > s.tests*maxPollGap.Seconds() }

// isReady reports whether the next test of a polled condition will succeed.
func (x *waitState) isReady() bool { return x.poll != nil && x.poll.IsReady() }

// checkPolls updates the states of the conditions polled since the last sample and probes the
// ranks that they depend on. It reports whether the alarm is due. active reports that the program
// has made other calls.
func (p *polls) checkPolls(core *protocol.Core, list []engine.PollRecord, more, active bool, now time.Time) (alarm bool) {
	p.more = more
	for _, e := range list {
		if p.all[e.Key] == nil {
			p.lastCallAt = now // a call like others
		}
		x := p.trackWait(e.Key, now)
		x.polled, x.stack = true, e.Stack
		x.poll, _ = e.Target.(*deadlock.Poll)
		// A persistent request may have completed in another call. So it raises the alarm only
		// after a sample without other calls.
		if x.poll != nil && p.isOverdue(x, now) && !x.isReady() && (x.poll.Ready != nil || !active) {
			x.alarmFrom, x.alarmed = now, !p.stats.isBusy() // a program that computes may block later
			alarm = true
		}
	}
	p.probePolledRanks(core, now)
	return alarm
}

// probePolledRanks sends liveness probes to the ranks that polled conditions depend on, as if one
// call waited for all of them.
func (p *polls) probePolledRanks(core *protocol.Core, now time.Time) {
	var ranks []int
	for _, x := range p.all {
		if x.poll != nil && p.isDue(now.Sub(x.since), sampleInterval) {
			ranks = append(ranks, x.poll.DependsOn...)
		}
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	x := &p.probes
	if len(ranks) == 0 || len(ranks) > maxProbes { // many ranks are probed in turns, without pauses
		x.interval = sampleInterval
	}
	if len(ranks) > 0 && p.isDue(now.Sub(x.last), x.interval) {
		p.probeRanks(core, x, envelope.Header{}, nil, ranks, now)
	}
}

// markPolled makes a call one that the program polls.
func (p *polls) markPolled(c *deadlock.Call, x *waitState) {
	c.Aside, c.Polls, c.Busy, c.At = false, true, p.stats.isBusy(), callerLine(x.stack)
}

// describePolls returns the polled conditions as waiting calls, the oldest first. It leaves out
// those in described and merges conditions of which one is enough.
func (p *polls) describePolls(now time.Time, described map[*waitState]bool) (list []deadlock.Call) {
	for _, x := range p.all {
		if !x.polled || described[x] || x.isReady() {
			continue
		}
		c := deadlock.Call{What: "nonblocking collective call"}
		if x.poll != nil {
			c = x.poll.Call
		}
		p.markPolled(&c, x)
		c.Millis = now.Sub(x.since).Milliseconds()
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b deadlock.Call) int {
		return cmp.Or(cmp.Compare(b.Millis, a.Millis), cmp.Compare(a.What, b.What))
	})
	list = mergeCalls(list)
	if p.more || len(list) > deadlock.MaxListed {
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
