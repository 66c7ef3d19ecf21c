package engine

import (
	"runtime"
	"time"
)

// A PollObserver is a Waitable that is notified of unsuccessful polls.
type PollObserver interface {
	Waitable

	// OnPoll is called with the lock held after an unsuccessful Test. It calls Add at
	// most once a round, as reported by FirstInRound.
	OnPoll(p *PollStats)
}

// PollStats records the Waitables that Test found not ready since the last call of
// Engine.TakePollStats: a round. A Waitable is recorded once a round, so that a Test
// costs one comparison, and only a sample of the tests is timed.
type PollStats struct {
	round     uint64
	tests     uint64 // unsuccessful, in this round
	records   []PollRecord
	truncated bool
	time      PollTime
	testStart time.Time // start of the timed test, or zero
	testEnd   time.Time // end of the timed test until the next one starts, or zero
	weight    int       // number of tests that the sample represents
}

// A PollRecord is a Waitable that was polled without success.
type PollRecord struct {
	Key    any       // identity, the same in each round
	Target any       // description, for the caller of TakePollStats
	Stack  []uintptr // as of runtime.Callers, innermost first; or nil
}

// PollTime is an estimate of the time of a polling program, from a sample of its tests.
type PollTime struct {
	Inside   time.Duration // inside Test
	Between  time.Duration // from the end of a Test to the start of the next
	Tests    int
	LongGaps int // tests followed by at least minWorkTime until the next
}

const (
	maxPollRecords = 1024 // records of a round
	maxPollStacks  = 16   // records with a stack
	timingInterval = 64   // of tests, the first of a round is timed

	minWorkTime = 20 * time.Microsecond // minimum time between two tests that counts as other work
)

// FirstInRound reports whether a Waitable, whose last round is *round, is polled for
// the first time in this round and there is room for a record. It updates *round.
func (p *PollStats) FirstInRound(round *uint64) bool {
	if *round == p.round {
		return false
	}
	*round = p.round
	return p.HasRoom(true)
}

// Round returns the number of the round, which is never 0.
func (p *PollStats) Round() uint64 { return p.round }

// HasRoom reports whether there is room for another record; ours is false if the caller
// has none itself. It notes if a record is omitted.
func (p *PollStats) HasRoom(ours bool) bool {
	ours = ours && len(p.records) < maxPollRecords
	p.truncated = p.truncated || !ours
	return ours
}

// Add appends a record.
func (p *PollStats) Add(key, what any) {
	x := PollRecord{Key: key, Target: what}
	if len(p.records) < maxPollStacks {
		pcs := make([]uintptr, maxStackDepth)
		x.Stack = pcs[:runtime.Callers(2, pcs)]
	}
	p.records = append(p.records, x)
}

// startTest is called when Test starts to poll the network.
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

// recordFailedTest is called at the end of an unsuccessful Test.
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

// recordSuccessfulTest is called at the end of a successful Test, which is not timed.
func (p *PollStats) recordSuccessfulTest() { p.testStart, p.testEnd = time.Time{}, time.Time{} }

// TakePollStats ends a round and returns its records, whether records were omitted, and
// the estimated time of the program.
func (e *Engine) TakePollStats() (list []PollRecord, more bool, spent PollTime) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &e.pollStats
	if !p.testEnd.IsZero() { // the program does other work since then
		now := time.Now()
		p.time.Between += now.Sub(p.testEnd)
		p.testEnd, p.weight = now, 1
	}
	list, more, spent = p.records, p.truncated, p.time
	*p = PollStats{round: p.round + 1, testEnd: p.testEnd, weight: p.weight}
	return list, more, spent
}
