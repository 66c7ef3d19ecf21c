package rnic

import (
	"fmt"
	"sync/atomic"
)

// A token is the right to read a shard's socket. Its state is one word, and each method that
// changes it is one transition of the table in the package comment. token_test.go explores all
// interleavings of the transitions.
type token struct {
	word atomic.Uint32 // a tokenState, and the number of seizers above it
}

// A tokenState names the holder of the token.
type tokenState uint32

const (
	tokenFree             tokenState = iota
	tokenPolling                     // a poller reads the socket once
	tokenLeading                     // a waiter reads it until it is satisfied
	tokenLeadingAsleep               // and blocks in it
	tokenLeadingDisplaced            // it was woken to give up the token
	tokenServing                     // the service reads it
	tokenServingAsleep               // and blocks in it
	tokenServingRecalled             // it must give up the token
	tokenSeized                      // SetImpair or a capture replaces the link
)

var tokenStateNames = [...]string{"free", "polling", "leading", "leading, asleep", "leading, displaced", "serving", "serving, asleep", "serving, recalled", "seized"}

// String returns the name in the table of the package comment.
func (t tokenState) String() string {
	if int(t) < len(tokenStateNames) {
		return tokenStateNames[t]
	}
	return fmt.Sprintf("tokenState(%d)", uint32(t))
}

// seizer is the unit of the number of seizers in the word.
const seizer = 1 << 8

func splitTokenWord(w uint32) (t tokenState, seizers uint32) {
	return tokenState(w % seizer), w / seizer
}

// state returns the current state.
func (t *token) state() tokenState {
	s, _ := splitTokenWord(t.word.Load())
	return s
}

// isFree reports whether no goroutine holds the token.
func (t *token) isFree() bool { return t.state() == tokenFree }

// isServing reports whether the service holds the token.
func (t *token) isServing() bool {
	s := t.state()
	return s == tokenServing || s == tokenServingAsleep || s == tokenServingRecalled
}

// isAsleep reports whether the holder is, or is about to be, blocked in the socket, and has not
// been woken by displace or recall.
func (t *token) isAsleep() bool {
	s := t.state()
	return s == tokenLeadingAsleep || s == tokenServingAsleep
}

// isRecalled reports whether the service must give up the token.
func (t *token) isRecalled() bool { return t.state() == tokenServingRecalled }

// hasSeizers reports whether a goroutine waits in seizeToken.
func (t *token) hasSeizers() bool { return t.word.Load() >= seizer }

// acquire takes the token in one of the states polling, leading and serving, unless it is taken or
// a seizer waits for it.
func (t *token) acquire(as tokenState) bool {
	return t.word.CompareAndSwap(uint32(tokenFree), uint32(as))
}

// A transition has the next state of each state, or 0 for one that it does not change.
type transition [tokenSeized + 1]tokenState

var (
	transitionBeginSleep = transition{tokenLeading: tokenLeadingAsleep, tokenServing: tokenServingAsleep}
	transitionEndSleep   = transition{tokenLeadingAsleep: tokenLeading, tokenLeadingDisplaced: tokenLeading, tokenServingAsleep: tokenServing}
	transitionDisplace   = transition{tokenLeadingAsleep: tokenLeadingDisplaced, tokenServingAsleep: tokenServingRecalled}
	transitionRecall     = transition{tokenLeadingAsleep: tokenLeadingDisplaced, tokenServingAsleep: tokenServingRecalled, tokenServing: tokenServingRecalled}
	transitionSeize      = transition{tokenFree: tokenSeized}
)

// applyTransition changes the state as x has it.
func (t *token) applyTransition(x *transition) (from, to tokenState) {
	for {
		w := t.word.Load()
		from, _ = splitTokenWord(w)
		if to = x[from]; to == 0 {
			return from, from
		}
		if t.word.CompareAndSwap(w, w-uint32(from)+uint32(to)) {
			return from, to
		}
	}
}

// release gives up the token.
func (t *token) release() { t.word.And(^uint32(seizer - 1)) }

// beginSleep is called by the holder before it blocks. It reports whether the holder may block; if
// not, it must give up the token.
func (t *token) beginSleep() bool {
	_, to := t.applyTransition(&transitionBeginSleep)
	return to != tokenServingRecalled
}

// endSleep is called by the holder after beginSleep, and reports whether it must give up the token.
func (t *token) endSleep() (displaced bool) {
	from, _ := t.applyTransition(&transitionEndSleep)
	return from == tokenLeadingDisplaced || from == tokenServingRecalled
}

// displace makes a holder that is asleep give up the token, and reports whether the caller must
// wake it.
func (t *token) displace() (wake bool) {
	from, to := t.applyTransition(&transitionDisplace)
	return from != to
}

// recall makes the service, or a holder that is asleep, give up the token, and reports whether
// the caller must wake it.
func (t *token) recall() (wake bool) {
	from, to := t.applyTransition(&transitionRecall)
	return from != to && from != tokenServing
}

// addSeizer and removeSeizer count a goroutine that waits to seize the token: no other one takes
// it meanwhile.
func (t *token) addSeizer()    { t.word.Add(seizer) }
func (t *token) removeSeizer() { t.word.Add(^uint32(seizer - 1)) }

// seize takes the token, if it is free, for one of the seizers.
func (t *token) seize() bool {
	from, to := t.applyTransition(&transitionSeize)
	return from != to
}
