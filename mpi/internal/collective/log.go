package collective

import (
	"cmp"
	"sync/atomic"
)

// comparedCall is the part of a call in progress that is compared with the calls of other ranks.
type comparedCall struct {
	number     uint32        // in the sequence of the communicator
	signature  callSignature // 0: the call is compared by Options.Check
	persistent bool
	unexpected int                          // number of its messages that arrived before their receive
	mismatch   atomic.Pointer[callMismatch] // found in this call, or nil
	endedRanks atomic.Pointer[[]int]        // ranks of the job that have completed the call
}

// recentCalls is the number of calls of a communicator that are compared with late or early
// signatures.
const recentCalls = 64

// A knownCall is the knowledge of a rank about one call of a communicator.
type knownCall struct {
	number     uint32
	started    bool // started at this rank: signature is ours; else it is that of the first rank heard of
	rank       uint32
	signature  callSignature
	active     *comparedCall // in progress at this rank, or nil
	unexpected int           // number of its messages that arrived before their receive
	mismatch   *callMismatch
}

// A callLog holds the known calls of a communicator. The communicator's lock guards it.
type callLog struct {
	recent       [recentCalls]knownCall // by sequence number modulo recentCalls
	older        map[uint32]*knownCall  // older calls that are in progress: nonblocking or persistent
	lateMismatch *callMismatch          // mismatch of a call that is complete, returned by the next call
}

// lookup returns the entry of a call, nil if there is none. last is the number of the last call
// started at this rank; lookup adds an entry for a later call.
func (l *callLog) lookup(number, last uint32) *knownCall {
	known := &l.recent[number%recentCalls]
	switch ahead := (number - last) & maxSeq; {
	case known.number == number && (known.started || known.signature != 0 || known.mismatch != nil):
		return known
	case ahead > 0 && ahead < recentCalls && known.active == nil:
		*known = knownCall{number: number}
		return known
	}
	return l.older[number]
}

// recordStart records a call that starts at this rank and returns its mismatch, if one is
// known. isNew reports whether the other ranks have to be notified.
func (l *callLog) recordStart(k *comparedCall, rank int) (mismatch *callMismatch, isNew bool) {
	number := k.number
	known := &l.recent[number%recentCalls]
	if known.active != nil && known.number != number {
		if l.older == nil {
			l.older = map[uint32]*knownCall{}
		}
		kept := *known
		l.older[known.number] = &kept
	}
	early := *known
	*known = knownCall{number: number, started: true, rank: uint32(rank), signature: k.signature, active: k}
	if early.number != number || early.started {
		return nil, false
	}
	known.unexpected = early.unexpected
	if known.mismatch = early.mismatch; known.mismatch == nil && !k.signature.sameCall(early.signature) {
		known.mismatch = &callMismatch{Number: number, Rank: early.rank, Other: uint32(rank), Signature: early.signature, OtherSignature: k.signature}
		isNew = true
	}
	return known.mismatch, isNew
}

// recordEnd records that a call is complete at this rank, and reports whether unexpected
// messages of it are left that it has not received. It ignores messages of a failed call.
func (l *callLog) recordEnd(k *comparedCall, err error) (leftover bool) {
	number := k.number
	known := &l.recent[number%recentCalls]
	if known.active != k {
		delete(l.older, number)
		return false
	}
	if known.active = nil; err == nil {
		l.lateMismatch = cmp.Or(l.lateMismatch, known.mismatch)
	} else if known.mismatch == nil {
		known.mismatch = &callMismatch{Number: number}
	}
	return known.mismatch == nil && known.unexpected > k.unexpected
}

// recordMismatch records a mismatch and reports whether it is new.
func (l *callLog) recordMismatch(d *callMismatch, last uint32) bool {
	known := l.lookup(d.Number, last)
	switch {
	case known == nil:
		l.lateMismatch = d
		return true
	case known.mismatch != nil:
		return false
	}
	known.mismatch = d
	if known.active != nil {
		known.active.mismatch.Store(d)
	}
	if known.started && (known.active == nil || known.active.persistent) { // a persistent call may be inactive
		l.lateMismatch = d
	}
	return true
}

// clearLate drops a late mismatch that a call has returned.
func (l *callLog) clearLate(d *callMismatch) {
	if l.lateMismatch == d {
		l.lateMismatch = nil
	}
}
