package mpi

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Fence ends the operations of all ranks since the last Fence, and begins an epoch
// in which there can be more (MPI_Win_fence). All ranks call it, and it returns
// when all have: what each has stored before can be read by the others.
func (w *Win) Fence(as ...Assert) error {
	if err := w.endFence(combineAsserts(as)); err != nil {
		return w.fail("fence", "", err)
	}
	return nil
}

func (w *Win) endFence(a Assert) error {
	if _, err := w.lockEngine(); err != nil {
		return err
	}
	err := w.epochs.checkClosed()
	if err == nil && a&NoPrecede != 0 && w.epochs.used {
		err = fmt.Errorf("%w: there have been operations, although NoPrecede", ErrEpoch)
	}
	w.eng.Unlock()
	if err != nil {
		return err
	}
	if a&NoPrecede == 0 {
		err = w.flush(w.allRanks(), remoteCompletion)
	}
	err = errors.Join(err, w.fenceBarrier())
	w.eng.Do(func(*protocol.Core) {
		w.epochs.fence, w.epochs.used = a&NoSucceed == 0, false
	})
	return err
}

// barrierRounds is how many rounds a barrier of n ranks has.
func barrierRounds(n int) int { return bits.Len(uint(n - 1)) }

// fenceBarrier returns when all ranks have called it: by dissemination, in signals of
// the window, so that a rank that waits for a lost one is told.
func (w *Win) fenceBarrier() error {
	n := len(w.peers)
	for round := range w.barrierSignals {
		core, err := w.eng.Lock()
		if err != nil {
			return err
		}
		w.sendSignal(core, &w.peers[(w.comm.rank+1<<round)%n], packetFence, uint64(round))
		w.eng.Unlock()
		come := func() bool {
			ok := w.barrierSignals[round] > 0
			if ok {
				w.barrierSignals[round]--
			}
			return ok
		}
		if err := w.waitUntil("the barrier of Fence or Free", come, nil, (w.comm.rank-1<<round+n)%n); err != nil {
			return err
		}
	}
	return nil
}
