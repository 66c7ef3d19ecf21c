package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// reach says how far operations have to be when a flush returns.
type reach uint8

const (
	locally    reach = iota // their buffers are the program's again
	everywhere              // they are done
)

// Flush returns when the operations on a rank are done, there too (MPI_Win_flush).
// It is for epochs of Lock and LockAll.
func (w *Win) Flush(target int) error { return w.flushRank("flush", target, everywhere) }

// FlushAll is Flush of all ranks (MPI_Win_flush_all).
func (w *Win) FlushAll() error { return w.flushEvery("flush-all", everywhere) }

// FlushLocal returns when the buffers of the operations on a rank are the program's
// again (MPI_Win_flush_local).
func (w *Win) FlushLocal(target int) error { return w.flushRank("flush-local", target, locally) }

// FlushLocalAll is FlushLocal of all ranks (MPI_Win_flush_local_all).
func (w *Win) FlushLocalAll() error { return w.flushEvery("flush-local-all", locally) }

// flushRank flushes the operations on one rank.
func (w *Win) flushRank(op string, target int, how reach) error {
	_, err := w.lock()
	if err == nil {
		err = w.locked(target)
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

// flushEvery flushes the operations on all ranks.
func (w *Win) flushEvery(op string, how reach) error {
	_, err := w.lock()
	if err == nil {
		err = w.epochs.passive()
		w.eng.Unlock()
	}
	if err == nil {
		err = w.flush(w.everyone(), how)
	}
	if err != nil {
		return w.fail(op, "", err)
	}
	return nil
}

// locked is nil if a rank is locked.
func (w *Win) locked(target int) error {
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
	case !w.has(target):
		return nil, fmt.Errorf("%w: %d, there are %d", ErrRank, target, len(w.peers))
	}
	return &w.peers[target].epoch, nil
}

// flush waits for operations. The error is that of the first that has failed.
func (w *Win) flush(ranks []int, how reach) error {
	core, err := w.eng.Lock()
	if err != nil {
		return err
	}
	var busy []int
	for _, r := range ranks {
		if !w.peers[r].out.reached(how) {
			busy = append(busy, r)
			if how == everywhere {
				w.peers[r].out.flushes++
				w.ask(core, &w.peers[r])
			}
		}
	}
	w.eng.Unlock()
	if len(busy) > 0 {
		left := busy
		err = w.wait("the end of operations", func() bool {
			for len(left) > 0 && w.peers[left[0]].out.reached(how) {
				left = left[1:]
			}
			return len(left) == 0
		}, func(r int) bool { return !w.peers[r].out.reached(how) }, busy...)
	}
	w.eng.Do(func(*protocol.Core) {
		if how == everywhere {
			for _, r := range busy {
				w.peers[r].out.flushes--
			}
		}
		for _, r := range ranks {
			o := &w.peers[r].out
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

// leave lets everything leave that was begun, since the program may now do something
// else for long.
func (w *Win) leave() {
	if fab := w.eng.Fabric(); fab != nil {
		w.eng.Do(func(*protocol.Core) { fab.Flush() })
	}
}

// reached reports whether operations are so far.
func (o *outlet) reached(how reach) bool {
	return how == everywhere && o.done() || how == locally && o.here()
}

// ask makes sure that there will be an Ack for all packets that have left.
func (w *Win) ask(core *protocol.Core, p *winPeer) {
	o := &p.out
	if o.asked < o.sent {
		o.asked = o.sent
		w.signal(core, p, packetAsk, 0)
	}
}

// Sync makes what others have stored by the adapter visible to the program, and
// what it has stored to them (MPI_Win_sync). In Go memory that others write is read
// by package sync/atomic until a call of synchronisation has returned; Sync lets
// the adapter work, so that a loop that looks at memory makes progress. It fails when
// the window has lost a rank, for whom such a loop may wait.
func (w *Win) Sync() error {
	if _, err := w.lock(); err != nil {
		return w.fail("sync", "", err)
	}
	w.eng.Unlock()
	x := &winWait{w: w, what: "Sync", until: func() bool { return false }, listed: true, polled: &w.synced, any: true}
	if w.eng.Test(x) {
		return w.fail("sync", "", x.err)
	}
	return nil
}
