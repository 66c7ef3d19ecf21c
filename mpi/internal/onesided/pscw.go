package onesided

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// PostEpoch opens an exposure epoch for some ranks (MPI_Win_post). nocheck asserts that they call
// StartEpoch afterwards, with nocheck, too.
func (w *Window) PostEpoch(ranks []int, nocheck bool) error {
	core, err := w.lockEngine()
	if err != nil {
		return err
	}
	defer w.transmitQueued()
	defer w.eng.Unlock()
	if w.broken != nil {
		return w.broken
	}
	if w.epochs.posted != nil {
		return fmt.Errorf("%w: call Wait first", ErrEpoch)
	}
	if err := w.epochs.closeFence(); err != nil {
		return err
	}
	w.epochs.posted = append(make([]int, 0, len(ranks)), ranks...)
	if !nocheck {
		for _, r := range ranks {
			w.sendSignal(core, &w.peers[r], packetPost, 0)
		}
	}
	return nil
}

// StartEpoch opens an access epoch on some ranks and waits for the Post of each (MPI_Win_start).
// nocheck asserts that they have called PostEpoch, with nocheck, too.
func (w *Window) StartEpoch(ranks []int, nocheck bool) error {
	if _, err := w.lockEngine(); err != nil {
		return err
	}
	e := &w.epochs
	var err error
	switch {
	case w.broken != nil:
		err = w.broken
	case e.started != nil:
		err = fmt.Errorf("%w: call Complete first", ErrEpoch)
	case e.all || e.locks > 0:
		err = fmt.Errorf("%w: call Unlock first", ErrEpoch)
	default:
		err = e.closeFence()
	}
	if err == nil {
		e.started = append(make([]int, 0, len(ranks)), ranks...)
	}
	w.eng.Unlock()
	if err != nil {
		return err
	}
	if !nocheck {
		err = w.waitSignals("Start", ranks, func(p *peer) *int { return &p.epoch.posts })
	}
	w.eng.Do(func(*protocol.Core) {
		for _, r := range ranks {
			w.peers[r].epoch.started = err == nil
		}
		if err != nil {
			e.started = nil
		}
	})
	return err
}

// waitSignals waits for one signal of each rank and consumes it.
func (w *Window) waitSignals(what string, ranks []int, signals func(*peer) *int) error {
	left := slices.Clone(ranks)
	return w.waitUntil(what, func() bool {
		for len(left) > 0 {
			n := signals(&w.peers[left[0]])
			if *n == 0 {
				return false
			}
			*n--
			left = left[1:]
		}
		return true
	}, func(r int) bool { return slices.Contains(left, r) && *signals(&w.peers[r]) == 0 }, ranks...)
}

// CompleteEpoch closes the epoch of Start (MPI_Win_complete). It returns when the buffers of the
// operations may be reused, and does not wait for Wait at the targets.
func (w *Window) CompleteEpoch() error {
	if _, err := w.lockEngine(); err != nil {
		return err
	}
	ranks := w.epochs.started
	w.eng.Unlock()
	if ranks == nil {
		return fmt.Errorf("%w: call Start first", ErrEpoch)
	}
	w.eng.Do(func(core *protocol.Core) {
		for _, r := range ranks {
			if p := &w.peers[r]; p.sendQueue.lastMessage > p.sendQueue.acked {
				w.requestAck(core, p)
			}
		}
	})
	err := w.waitUntil("Complete", func() bool {
		for _, r := range ranks {
			if !w.peers[r].sendQueue.allSent() {
				return false
			}
		}
		return true
	}, func(r int) bool { return !w.peers[r].sendQueue.allSent() }, ranks...)
	w.eng.Do(func(core *protocol.Core) {
		w.epochs.started = nil
		for _, r := range ranks {
			w.peers[r].epoch.started = false
			if err == nil {
				w.sendSignal(core, &w.peers[r], packetComplete, 0)
			}
		}
	})
	if err != nil {
		return err
	}
	w.transmitQueued()
	return w.flushTargets(ranks, Local)
}

// WaitEpoch closes the epoch of Post (MPI_Win_wait). It returns when all ranks of the group have
// called Complete and their operations are complete.
func (w *Window) WaitEpoch() error {
	ranks, err := w.postedRanks()
	if err == nil {
		err = w.waitSignals("Wait", ranks, func(p *peer) *int { return &p.epoch.ends })
		w.eng.Do(func(*protocol.Core) { w.epochs.posted = nil })
	}
	return err
}

// postedRanks returns the ranks given to Post.
func (w *Window) postedRanks() ([]int, error) {
	if _, err := w.lockEngine(); err != nil {
		return nil, err
	}
	defer w.eng.Unlock()
	if w.epochs.posted == nil {
		return nil, fmt.Errorf("%w: call Post first", ErrEpoch)
	}
	return w.epochs.posted, nil
}

// TestEpoch reports whether the epoch of Post can be closed, and closes it (MPI_Win_test). It does
// not wait.
func (w *Window) TestEpoch() (bool, error) {
	ranks, err := w.postedRanks()
	if err != nil {
		return false, err
	}
	open := func(r int) bool { return w.peers[r].epoch.ends == 0 }
	x := &syncWait{w: w, callName: "Test", listed: true, pollRound: &w.testRound, suspects: ranks, isPending: open,
		condition: func() bool { return !slices.ContainsFunc(ranks, open) }}
	if !w.eng.Test(x) {
		return false, nil
	}
	w.eng.Do(func(*protocol.Core) {
		w.epochs.posted = nil
		for _, r := range ranks {
			if x.err == nil {
				w.peers[r].epoch.ends--
			}
		}
	})
	return x.err == nil, x.err
}
