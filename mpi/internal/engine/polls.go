package engine

import (
	"runtime"
	"time"
)

// Polled is a Waitable that can be told of when a program asks for it again and again
// instead of waiting for it.
type Polled interface {
	Waitable

	// Polled is called with the lock held when Test has found that it is not ready. It
	// calls Add, once a round, which New tells.
	Polled(p *Polls)
}

// Polls is what was asked for in vain since the last call of Engine.Polls: a round.
// What is polled is noted once a round, so that a Test costs a comparison, and the
// clock is read for a few of them only.
type Polls struct {
	round uint64
	tests uint64 // in vain, of this round
	list  []Poll
	more  bool
	spent Spent
	began time.Time // the test that is timed, or zero
	ended time.Time // the test that was timed, until the next one begins; or zero
	stand int       // for so many tests it stands
}

// Poll is something that was asked for in vain.
type Poll struct {
	Key    any       // the same in each round
	What   any       // to those who ask
	Places []uintptr // where in the program, as runtime.Callers says it, innermost first; or nil
}

// Spent says what a program that polls does with its time. It is an estimate: not all
// tests are timed.
type Spent struct {
	Inside  time.Duration // of Test
	Between time.Duration // from the end of one to the beginning of the next
	Tests   int
	Long    int // of them, until the next of which the program has done something
}

const (
	maxPolls   = 1024 // of a round
	placed     = 16   // of them, of which it is known where they are
	timedEvery = 64   // tests: the first of a round is timed, and then each of so many

	something = 20 * time.Microsecond // it takes at least to do something else
)

// New reports whether something is polled for the first time in this round, which it
// notes. It does not when there is no room for more.
func (p *Polls) New(round *uint64) bool {
	if *round == p.round {
		return false
	}
	*round = p.round
	return p.Room(true)
}

// Round is the number of the round, never 0.
func (p *Polls) Round() uint64 { return p.round }

// Room reports whether there is room for another, if the caller has room for it.
func (p *Polls) Room(ours bool) bool {
	ours = ours && len(p.list) < maxPolls
	p.more = p.more || !ours
	return ours
}

// Add notes what is polled.
func (p *Polls) Add(key, what any) {
	x := Poll{Key: key, What: what}
	if len(p.list) < placed {
		pcs := make([]uintptr, depth)
		x.Places = pcs[:runtime.Callers(2, pcs)]
	}
	p.list = append(p.list, x)
}

// begin is the beginning of a look at the network by Test.
func (p *Polls) begin() {
	if !p.ended.IsZero() {
		between := time.Since(p.ended)
		p.ended = time.Time{}
		p.spent.Between += between * time.Duration(p.stand)
		p.spent.Tests += p.stand
		if between >= something {
			p.spent.Long += p.stand
		}
	}
	if p.tests%timedEvery == 0 {
		p.began, p.stand = time.Now(), timedEvery
		if p.tests == 0 {
			p.stand = 1
		}
	}
	p.tests++
}

// vain is the end of one that was in vain.
func (p *Polls) vain(w Waitable) {
	timed := !p.began.IsZero()
	if timed {
		p.spent.Inside += time.Since(p.began) * time.Duration(p.stand)
	}
	if w, ok := w.(Polled); ok {
		w.Polled(p)
	}
	if timed {
		p.began, p.ended = time.Time{}, time.Now()
	}
}

// found is the end of one that was not, of which nothing is made.
func (p *Polls) found() { p.began, p.ended = time.Time{}, time.Time{} }

// Polls ends a round: what was polled in it, whether there was more than is listed,
// and what the program did meanwhile.
func (e *Engine) Polls() (list []Poll, more bool, spent Spent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &e.polls
	if !p.ended.IsZero() { // since when the program does something else
		now := time.Now()
		p.spent.Between += now.Sub(p.ended)
		p.ended, p.stand = now, 1
	}
	list, more, spent = p.list, p.more, p.spent
	*p = Polls{round: p.round + 1, ended: p.ended, stand: p.stand}
	return list, more, spent
}
