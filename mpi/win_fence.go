package mpi

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Fence completes the operations of all ranks since the last Fence and opens an access epoch
// (MPI_Win_fence). All ranks call it; it returns after all have called it. Stores of each rank
// before it are visible to the others after it.
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
		err = fmt.Errorf("%w: operations since the last Fence contradict NoPrecede", ErrEpoch)
	}
	w.eng.Unlock()
	if err != nil {
		return err
	}
	if a&NoPrecede == 0 {
		err = w.flushTargets(w.allRanks(), remoteCompletion)
	}
	err = errors.Join(err, w.fenceBarrier())
	w.eng.Do(func(*protocol.Core) {
		w.epochs.fence, w.epochs.used = a&NoSucceed == 0, false
	})
	return err
}

// barrierRounds returns the number of rounds of a dissemination barrier of n ranks.
func barrierRounds(n int) int { return bits.Len(uint(n - 1)) }

// fenceBarrier is a dissemination barrier. It uses signals of the window, so that it fails when
// a rank is lost.
func (w *Win) fenceBarrier() error {
	n := len(w.peers)
	for round := range w.barrierSignals {
		core, err := w.eng.Lock()
		if err != nil {
			return err
		}
		w.sendSignal(core, &w.peers[(w.comm.base.Rank+1<<round)%n], packetFence, uint64(round))
		w.eng.Unlock()
		come := func() bool {
			ok := w.barrierSignals[round] > 0
			if ok {
				w.barrierSignals[round]--
			}
			return ok
		}
		if err := w.waitUntil("the barrier of Fence or Free", come, nil, (w.comm.base.Rank-1<<round+n)%n); err != nil {
			return err
		}
	}
	return nil
}
