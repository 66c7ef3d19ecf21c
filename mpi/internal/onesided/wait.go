package onesided

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
)

// A syncWait is a wait of a synchronization call for other ranks of a window. It also ends when a
// rank of the window is lost.
type syncWait struct {
	w             *Window
	callName      string // for reports
	targets       []int  // of a lock, for reports
	condition     func() bool
	suspects      []int          // ranks of the window to probe
	isPending     func(int) bool // reports whether a suspect is waited for now; nil is always
	any           bool           // one of the suspects is enough
	pollRound     *uint64        // of a call that does not wait, for engine.PollStats.FirstInRound
	conditionWins bool           // the loss of a rank does not undo a condition that holds
	err           error
	checks        int  // number of calls of probeWaits
	listed        bool // in Window.waits
	probeWhenDone bool // send probes although done
	done          bool
}

// Ready implements engine.Waitable.
func (x *syncWait) Ready() bool {
	if x.done {
		return true
	}
	if x.conditionWins && x.condition() {
		x.done = true
		return true
	}
	if x.w.broken != nil {
		x.done, x.err = true, x.w.broken
		return true
	}
	if x.done = !x.conditionWins && x.condition(); !x.done && !x.listed {
		x.listed = true
		x.w.waits = append(x.w.waits, x)
	}
	return x.done
}

// waitUntil waits until condition holds. suspects are the ranks that it depends on, of which
// isPending selects those that are waited for now; nil selects all. The caller must not hold the
// engine's lock.
func (w *Window) waitUntil(callName string, condition func() bool, isPending func(int) bool, suspects ...int) error {
	x := &syncWait{w: w, callName: callName, condition: condition, isPending: isPending, suspects: suspects}
	return errors.Join(w.eng.Wait(context.Background(), x), x.err)
}

// DescribeWait implements deadlock.Describer.
func (x *syncWait) DescribeWait() deadlock.Call {
	d := deadlock.Call{What: x.callName, Comm: x.w.comm.Name(), Any: x.any}
	switch len(x.targets) {
	case 0:
	case 1:
		d.What += fmt.Sprintf("(target %s)", x.w.comm.DescribeRank(int32(x.w.comm.WorldRank(x.targets[0]))))
	default:
		d.What += fmt.Sprintf("(%d ranks)", len(x.targets))
	}
	suspects := x.suspects
	if suspects == nil && x.any { // any other rank
		suspects = slices.DeleteFunc(x.w.allRanks(), func(r int) bool { return r == x.w.comm.Rank })
	}
	for _, r := range suspects {
		if x.isPending == nil || x.isPending(r) {
			d.For = append(d.For, x.w.comm.WorldRank(r))
		}
	}
	return d
}

// WaitKey implements deadlock.Keyed.
func (x *syncWait) WaitKey() any { return x }

// OnPoll implements engine.PollObserver.
func (x *syncWait) OnPoll(p *engine.PollStats) {
	if x.pollRound != nil && p.FirstInRound(x.pollRound) {
		p.Add(x.pollRound, deadlock.NewPoll(x.DescribeWait(), func() bool { return x.w.broken != nil || x.condition() }))
	}
}

var (
	_ deadlock.Describer  = &syncWait{}
	_ engine.PollObserver = &syncWait{}
)
