package engine

import (
	"runtime"
	"time"
)

// PollObserver is a Waitable that can be told of when a program asks for it again and again
// instead of waiting for it.
type PollObserver interface {
	Waitable

	// OnPoll is called with the lock held when Test has found that it is not ready. It
	// calls Add, once a round, which New tells.
	OnPoll(p *PollStats)
}

// PollStats is what was asked for in vain since the last call of Engine.TakePollStats: a round.
// What is polled is noted once a round, so that a Test costs a comparison, and the
// clock is read for a few of them only.
type PollStats struct {
	round     uint64
	tests     uint64 // in vain, of this round
	records   []PollRecord
	truncated bool
	time      PollTime
	testStart time.Time // the test that is timed, or zero
	testEnd   time.Time // the test that was timed, until the next one begins; or zero
	weight    int       // for so many tests it stands
}

// PollRecord is something that was asked for in vain.
type PollRecord struct {
	Key    any       // the same in each round
	Target any       // to those who ask
	Stack  []uintptr // where in the program, as runtime.Callers says it, innermost first; or nil
}

// PollTime says what a program that polls does with its time. It is an estimate: not all
// tests are timed.
type PollTime struct {
	Inside   time.Duration // of Test
	Between  time.Duration // from the end of one to the beginning of the next
	Tests    int
	LongGaps int // of them, until the next of which the program has done something
}

const (
	maxPollRecords = 1024 // of a round
	maxPollStacks  = 16   // of them, of which it is known where they are
	timingInterval = 64   // tests: the first of a round is timed, and then each of so many

	minWorkTime = 20 * time.Microsecond // it takes at least to do something else
)

// FirstInRound reports whether something is polled for the first time in this round, which it
// notes. It does not when there is no room for more.
func (p *PollStats) FirstInRound(round *uint64) bool {
	if *round == p.round {
		return false
	}
	*round = p.round
	return p.HasRoom(true)
}

// Round is the number of the round, never 0.
func (p *PollStats) Round() uint64 { return p.round }

// HasRoom reports whether there is room for another, if the caller has room for it.
func (p *PollStats) HasRoom(ours bool) bool {
	ours = ours && len(p.records) < maxPollRecords
	p.truncated = p.truncated || !ours
	return ours
}

// Add notes what is polled.
func (p *PollStats) Add(key, what any) {
	x := PollRecord{Key: key, Target: what}
	if len(p.records) < maxPollStacks {
		pcs := make([]uintptr, maxStackDepth)
		x.Stack = pcs[:runtime.Callers(2, pcs)]
	}
	p.records = append(p.records, x)
}

// startTest is the beginning of a look at the network by Test.
func (p *PollStats) startTest() {
	if !p.testEnd.IsZero() {
		between := time.Since(p.testEnd)
		p.testEnd = time.Time{}
		p.time.Between += between * time.Duration(p.weight)
		p.time.Tests += p.weight
		if between >= minWorkTime {
			p.time.LongGaps += p.weight
		}
	}
	if p.tests%timingInterval == 0 {
		p.testStart, p.weight = time.Now(), timingInterval
		if p.tests == 0 {
			p.weight = 1
		}
	}
	p.tests++
}

// recordFailedTest is the end of one that was in vain.
func (p *PollStats) recordFailedTest(w Waitable) {
	timed := !p.testStart.IsZero()
	if timed {
		p.time.Inside += time.Since(p.testStart) * time.Duration(p.weight)
	}
	if w, ok := w.(PollObserver); ok {
		w.OnPoll(p)
	}
	if timed {
		p.testStart, p.testEnd = time.Time{}, time.Now()
	}
}

// recordSuccessfulTest is the end of one that was not, of which nothing is made.
func (p *PollStats) recordSuccessfulTest() { p.testStart, p.testEnd = time.Time{}, time.Time{} }

// TakePollStats ends a round: what was polled in it, whether there was more than is listed,
// and what the program did meanwhile.
func (e *Engine) TakePollStats() (list []PollRecord, more bool, spent PollTime) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &e.pollStats
	if !p.testEnd.IsZero() { // since when the program does something else
		now := time.Now()
		p.time.Between += now.Sub(p.testEnd)
		p.testEnd, p.weight = now, 1
	}
	list, more, spent = p.records, p.truncated, p.time
	*p = PollStats{round: p.round + 1, testEnd: p.testEnd, weight: p.weight}
	return list, more, spent
}
