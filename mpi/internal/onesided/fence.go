package onesided

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// FenceEpoch completes the operations of all ranks since the last call, waits for all ranks and
// opens an access epoch (MPI_Win_fence). noPrecede asserts that no rank has started operations,
// noSucceed that none will until the next call.
func (w *Window) FenceEpoch(noPrecede, noSucceed bool) error {
	if _, err := w.lockEngine(); err != nil {
		return err
	}
	err := w.epochs.checkClosed()
	if err == nil && noPrecede && w.epochs.used {
		err = fmt.Errorf("%w: operations since the last Fence contradict NoPrecede", ErrEpoch)
	}
	w.eng.Unlock()
	if err != nil {
		return err
	}
	if !noPrecede {
		err = w.flushTargets(w.allRanks(), Remote)
	}
	err = errors.Join(err, w.fenceBarrier())
	w.eng.Do(func(*protocol.Core) {
		w.epochs.fence, w.epochs.used = !noSucceed, false
	})
	return err
}

// barrierRounds returns the number of rounds of a dissemination barrier of n ranks.
func barrierRounds(n int) int { return bits.Len(uint(n - 1)) }

// fenceBarrier is a dissemination barrier. It uses signals of the window, so that it fails when
// a rank is lost.
func (w *Window) fenceBarrier() error {
	n := len(w.peers)
	for round := range w.barrierSignals {
		core, err := w.eng.Lock()
		if err != nil {
			return err
		}
		w.sendSignal(core, &w.peers[(w.comm.Rank+1<<round)%n], packetFence, uint64(round))
		w.eng.Unlock()
		come := func() bool {
			ok := w.barrierSignals[round] > 0
			if ok {
				w.barrierSignals[round]--
			}
			return ok
		}
		// The rank that signals may leave the barrier and the job before this one looks.
		x := &syncWait{w: w, callName: "the barrier of Fence or Free", condition: come, conditionWins: true,
			suspects: []int{(w.comm.Rank - 1<<round + n) % n}}
		if err := errors.Join(w.eng.Wait(context.Background(), x), x.err); err != nil {
			return err
		}
	}
	return nil
}
