package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// winWait is a call that waits for something that ranks of a window have to do.
// It ends, too, when the window loses a rank.
type winWait struct {
	w        *Win
	what     string // the call
	targets  []int  // of a lock
	until    func() bool
	suspects []int          // ranks of the window that it waits for
	missing  func(int) bool // those of them that it waits for now; nil is all
	any      bool           // one of them is enough
	polled   *uint64        // of a call that does not wait: engine.Polls.New
	err      error
	age      int // how often it was looked after
	listed   bool
	lasting  bool // it is looked after although it is over
	over     bool
}

// Ready implements engine.Waitable.
func (x *winWait) Ready() bool {
	if x.over {
		return true
	}
	if x.w.broken != nil {
		x.over, x.err = true, x.w.broken
		return true
	}
	if x.over = x.until(); !x.over && !x.listed {
		x.listed = true
		x.w.waits = append(x.w.waits, x)
	}
	return x.over
}

// wait waits, in a call, until something is so that suspects have to do, and that each
// does for whom missing is not so any more.
func (w *Win) wait(what string, until func() bool, missing func(int) bool, suspects ...int) error {
	x := &winWait{w: w, what: what, until: until, missing: missing, suspects: suspects}
	return errors.Join(w.eng.Wait(context.Background(), x), x.err)
}

// watch looks after those who wait.
func (w *Win) watch(core *protocol.Core) {
	kept := w.waits[:0]
	for _, x := range w.waits {
		if x.over && !x.lasting {
			continue
		}
		kept = append(kept, x)
		if x.age++; x.age&(x.age-1) == 0 || x.age%maxAge == 0 {
			for _, r := range x.suspects {
				w.ping(core, &w.peers[r])
			}
		}
	}
	clear(w.waits[len(kept):])
	w.waits = kept
}

// maxAge is how many times after the last sign of life was asked for the next one
// is, at most.
const maxAge = 16

// ping sends a packet that nobody reads, to see whether it arrives.
func (w *Win) ping(core *protocol.Core, p *winPeer) {
	if p.job != w.eng.Rank() && core.Backlog(p.job) == 0 {
		_ = core.SendActive(p.job, envelope.Header{Tag: packetSign}, nil) // that it is lost is told otherwise
	}
}

// lost is called when a rank is lost: nothing can be relied on any more.
func (w *Win) lost(core *protocol.Core, p *winPeer) {
	why := core.PeerError(p.job)
	w.drop(p, why)
	if w.broken != nil {
		return
	}
	w.broken = why
	for r := range w.peers {
		if q := &w.peers[r]; q != p && r != w.comm.rank {
			w.signal(core, q, packetBroken, uint64(p.rank))
		}
	}
}

// told is called when another rank says that one is lost.
func (w *Win) told(from *winPeer, rank uint64) error {
	if rank >= uint64(len(w.peers)) {
		return fmt.Errorf("window %s: it has lost rank %d, which there is not", w.Name(), rank)
	}
	if w.broken == nil {
		w.broken = fmt.Errorf("%w: rank %d, says rank %d", ErrLost, w.peers[rank].job, from.job)
	}
	return nil
}
