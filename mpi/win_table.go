package mpi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// windowTable lists the windows of a rank. The engine's lock guards it, except in stop.
type windowTable struct {
	all        map[uint32]*Win // by context id
	world      *job
	timer      *time.Timer
	cancel     context.CancelFunc // stops the goroutine that drives progress
	goroutines sync.WaitGroup
	closed     bool
}

// add adds a window. The first window starts a goroutine that drives progress while the program
// computes, and the timer of liveness probes. The caller holds the engine's lock.
func (ws *windowTable) add(world *job, w *Win) error {
	if ws.closed {
		return ErrFinalized
	}
	if len(ws.all) == 0 {
		ws.all, ws.world = map[uint32]*Win{}, world
		ctx, cancel := context.WithCancel(context.Background())
		ws.cancel = cancel
		ws.goroutines.Go(func() { world.eng.PollWhenIdle(ctx) })
		ws.timer = time.AfterFunc(livenessInterval, ws.checkLiveness)
	}
	ws.all[w.comm.base.ContextID] = w
	return nil
}

func (ws *windowTable) remove(w *Win) {
	if ws.all[w.comm.base.ContextID] != w {
		return
	}
	delete(ws.all, w.comm.base.ContextID)
	if len(ws.all) == 0 {
		ws.timer.Stop()
		ws.cancel()
	}
}

// stop deregisters the windows and waits for the goroutines.
func (ws *windowTable) stop(world *job) {
	world.eng.Do(func(*protocol.Core) {
		ws.closed = true
		for _, w := range ws.all {
			w.deregisterMemory()
		}
	})
	ws.goroutines.Wait()
}

// handlePacket handles a packet of a window. It ignores packets of a window that was freed
// after the loss of a rank.
func (ws *windowTable) handlePacket(from int, h *envelope.Header, payload []byte) error {
	w := ws.all[h.Context]
	if w == nil {
		return nil
	}
	r := w.comm.base.LocalRank(from)
	if r == Undefined {
		return fmt.Errorf("window %s: packet of a rank that is not a member", w.Name())
	}
	return w.handlePacket(w.eng.Core(), &w.peers[r], h, payload)
}

// onRankLost breaks the windows of a lost rank.
func (ws *windowTable) onRankLost(rank int) {
	for _, w := range ws.all {
		if r := w.comm.base.LocalRank(rank); r != Undefined {
			w.onRankLost(w.eng.Core(), &w.peers[r])
		}
	}
}

// livenessInterval is the time between two checks of the waiting calls.
const livenessInterval = 500 * time.Millisecond

// checkLiveness sends liveness probes for the waiting calls of all windows.
func (ws *windowTable) checkLiveness() {
	ws.world.eng.Do(func(core *protocol.Core) {
		if ws.closed || len(ws.all) == 0 {
			return
		}
		for _, w := range ws.all {
			w.probeWaits(core)
		}
		ws.timer.Reset(livenessInterval)
	})
}
