package mpi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// windowTable are those of a rank. The engine's lock guards them, but for what stop
// does.
type windowTable struct {
	all        map[uint32]*Win // by the number of their communicator
	world      *World
	timer      *time.Timer
	cancel     context.CancelFunc // of who attends to the network
	goroutines sync.WaitGroup
	closed     bool
}

// add makes a window known to the others. With the first of them a goroutine
// begins to look at the network while the program does not, and another to look
// after ranks that are waited for.
func (ws *windowTable) add(world *World, w *Win) error {
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
	ws.all[w.comm.contextID] = w
	return nil
}

func (ws *windowTable) remove(w *Win) {
	if ws.all[w.comm.contextID] != w {
		return
	}
	delete(ws.all, w.comm.contextID)
	if len(ws.all) == 0 {
		ws.timer.Stop()
		ws.cancel()
	}
}

// stop ends the goroutines. Windows that are there have no use any more.
func (ws *windowTable) stop(world *World) {
	world.eng.Do(func(*protocol.Core) {
		ws.closed = true
		for _, w := range ws.all {
			w.deregister()
		}
	})
	ws.goroutines.Wait()
}

// handlePacket handles a packet of a window. What has come for a window that is not there any
// more, because it has lost a rank, is of no use.
func (ws *windowTable) handlePacket(from int, h *envelope.Header, payload []byte) error {
	w := ws.all[h.Context]
	if w == nil {
		return nil
	}
	r := w.comm.localRank(from)
	if r == Undefined {
		return fmt.Errorf("window %s: not a rank of it", w.Name())
	}
	return w.handlePacket(w.eng.Core(), &w.peers[r], h, payload)
}

// onRankLost is told of lost ranks.
func (ws *windowTable) onRankLost(rank int) {
	for _, w := range ws.all {
		if r := w.comm.localRank(rank); r != Undefined {
			w.onRankLost(w.eng.Core(), &w.peers[r])
		}
	}
}

// livenessInterval is how often somebody looks after those who wait.
const livenessInterval = 500 * time.Millisecond

// checkLiveness asks ranks that are waited for for a sign of life: a packet, which nobody
// but their adapter has to answer. A rank that does not is lost, and everybody is
// told.
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
