package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// completionLevel says how far operations have to be when a flush returns.
type completionLevel uint8

const (
	localCompletion  completionLevel = iota // their buffers are the program's again
	remoteCompletion                        // they are done
)

// Flush returns when the operations on a rank are done, there too (MPI_Win_flush).
// It is for epochs of Lock and LockAll.
func (w *Win) Flush(target int) error { return w.flushRank("flush", target, remoteCompletion) }

// FlushAll is Flush of all ranks (MPI_Win_flush_all).
func (w *Win) FlushAll() error { return w.flushAllRanks("flush-all", remoteCompletion) }

// FlushLocal returns when the buffers of the operations on a rank are the program's
// again (MPI_Win_flush_local).
func (w *Win) FlushLocal(target int) error {
	return w.flushRank("flush-local", target, localCompletion)
}

// FlushLocalAll is FlushLocal of all ranks (MPI_Win_flush_local_all).
func (w *Win) FlushLocalAll() error { return w.flushAllRanks("flush-local-all", localCompletion) }

// flushRank flushes the operations on one rank.
func (w *Win) flushRank(op string, target int, how completionLevel) error {
	_, err := w.lockEngine()
	if err == nil {
		err = w.checkLocked(target)
		w.eng.Unlock()
	}
	if err == nil && target != ProcNull {
		err = w.flush([]int{target}, how)
	}
	if err != nil {
		return w.fail(op, fmt.Sprintf("to %d", target), err)
	}
	return nil
}

// flushAllRanks flushes the operations on all ranks.
func (w *Win) flushAllRanks(op string, how completionLevel) error {
	_, err := w.lockEngine()
	if err == nil {
		err = w.epochs.checkPassive()
		w.eng.Unlock()
	}
	if err == nil {
		err = w.flush(w.allRanks(), how)
	}
	if err != nil {
		return w.fail(op, "", err)
	}
	return nil
}

// checkLocked is nil if a rank is locked.
func (w *Win) checkLocked(target int) error {
	e, err := w.epochOf(target)
	if err == nil && !w.epochs.all && e.locked == 0 {
		err = fmt.Errorf("%w: the rank is not locked", ErrEpoch)
	}
	return err
}

// epochOf returns the epoch of a rank, or of ProcNull.
func (w *Win) epochOf(target int) (*peerEpoch, error) {
	switch {
	case target == ProcNull:
		return &w.epochs.null, nil
	case !w.hasRank(target):
		return nil, fmt.Errorf("%w: %d, there are %d", ErrRank, target, len(w.peers))
	}
	return &w.peers[target].epoch, nil
}

// flush waits for operations. The error is that of the first that has failed.
func (w *Win) flush(ranks []int, how completionLevel) error {
	core, err := w.eng.Lock()
	if err != nil {
		return err
	}
	var busy []int
	for _, r := range ranks {
		if !w.peers[r].sendQueue.isComplete(how) {
			busy = append(busy, r)
			if how == remoteCompletion {
				w.peers[r].sendQueue.flushes++
				w.requestAck(core, &w.peers[r])
			}
		}
	}
	w.eng.Unlock()
	if len(busy) > 0 {
		left := busy
		err = w.waitUntil("the end of operations", func() bool {
			for len(left) > 0 && w.peers[left[0]].sendQueue.isComplete(how) {
				left = left[1:]
			}
			return len(left) == 0
		}, func(r int) bool { return !w.peers[r].sendQueue.isComplete(how) }, busy...)
	}
	w.eng.Do(func(*protocol.Core) {
		if how == remoteCompletion {
			for _, r := range busy {
				w.peers[r].sendQueue.flushes--
			}
		}
		for _, r := range ranks {
			o := &w.peers[r].sendQueue
			if err == nil {
				err = o.err
			}
			o.err = nil
		}
		if err == nil {
			err = w.broken
		}
	})
	return err
}

// transmitQueued lets everything leave that was begun, since the program may now do something
// else for long.
func (w *Win) transmitQueued() {
	if fab := w.eng.Fabric(); fab != nil {
		w.eng.Do(func(*protocol.Core) { fab.Flush() })
	}
}

// isComplete reports whether operations are so far.
func (o *sendQueue) isComplete(how completionLevel) bool {
	return how == remoteCompletion && o.remotelyComplete() || how == localCompletion && o.locallyComplete()
}

// requestAck makes sure that there will be an Ack for all packets that have left.
func (w *Win) requestAck(core *protocol.Core, p *winPeer) {
	o := &p.sendQueue
	if o.ackRequested < o.sent {
		o.ackRequested = o.sent
		w.sendSignal(core, p, packetAckRequest, 0)
	}
}

// Sync makes what others have stored by the adapter visible to the program, and
// what it has stored to them (MPI_Win_sync). In Go memory that others write is read
// by package sync/atomic until a call of synchronisation has returned; Sync lets
// the adapter work, so that a loop that looks at memory makes progress. It fails when
// the window has lost a rank, for whom such a loop may wait.
func (w *Win) Sync() error {
	if _, err := w.lockEngine(); err != nil {
		return w.fail("sync", "", err)
	}
	w.eng.Unlock()
	x := &winWait{w: w, callName: "Sync", condition: func() bool { return false }, listed: true, pollRound: &w.syncRound, any: true}
	if w.eng.Test(x) {
		return w.fail("sync", "", x.err)
	}
	return nil
}
