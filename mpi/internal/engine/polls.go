package engine

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/match"
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
	start     time.Time // of the round
	records   []PollRecord
	probes    map[match.Envelope]bool // that are recorded
	truncated bool
	tests     int // unsuccessful
	timed     int // those of them that are timed, and the time inside of these
	inside    time.Duration
}

// A PollRecord is a Waitable that was polled without success.
type PollRecord struct {
	Key    any       // identity, the same in each round
	Target any       // description, for the caller of TakePollStats
	Stack  []uintptr // as of runtime.Callers, innermost first; or nil
}

// PollTime is the time of a polling program in a round.
type PollTime struct {
	Total  time.Duration
	Inside time.Duration // inside of unsuccessful tests, estimated from a sample
	Tests  int           // number of unsuccessful tests
}

const (
	maxPollRecords = 1024 // records of a round
	maxPollStacks  = 16   // records with a stack
	timingInterval = 64   // of tests, the first of a round is timed
)

// FirstInRound reports whether a Waitable, whose last round is *round, is polled for
// the first time in this round and there is room for a record. It updates *round.
func (p *PollStats) FirstInRound(round *uint64) bool {
	if *round == p.round {
		return false
	}
	*round = p.round
	return p.hasRoom()
}

// FirstProbeInRound is FirstInRound for a probe for the messages that e matches.
func (p *PollStats) FirstProbeInRound(e match.Envelope) bool {
	if p.probes[e] || !p.hasRoom() {
		return false
	}
	if p.probes == nil {
		p.probes = map[match.Envelope]bool{}
	}
	p.probes[e] = true
	return true
}

// hasRoom reports whether there is room for another record, and notes if there is none.
func (p *PollStats) hasRoom() bool {
	p.truncated = p.truncated || len(p.records) == maxPollRecords
	return len(p.records) < maxPollRecords
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

// startTest is called when Test starts to poll the network. It returns the time if this test is
// timed.
func (p *PollStats) startTest() (start time.Time) {
	if p.tests%timingInterval == 0 {
		start = vtime.Now()
	}
	return start
}

// recordFailedTest is called at the end of an unsuccessful Test, with the result of startTest.
func (p *PollStats) recordFailedTest(w Waitable, start time.Time) {
	p.tests++
	if !start.IsZero() {
		p.timed++
		p.inside += vtime.Since(start)
	}
	if w, ok := w.(PollObserver); ok {
		w.OnPoll(p)
	}
}

// TakePollStats ends a round and returns its records, whether records were omitted, and
// the time of the program.
func (e *Engine) TakePollStats() (list []PollRecord, more bool, spent PollTime) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, now := &e.pollStats, vtime.Now()
	spent = PollTime{Total: now.Sub(p.start), Tests: p.tests}
	if p.timed > 0 {
		spent.Inside = p.inside / time.Duration(p.timed) * time.Duration(p.tests)
	}
	list, more = p.records, p.truncated
	*p = PollStats{round: p.round + 1, start: now}
	return list, more, spent
}
