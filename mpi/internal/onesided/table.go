package onesided

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A Table lists the windows of a rank. The engine's lock guards it, except in Stop.
type Table struct {
	Config
	all        map[uint32]*Window // by context id
	timer      *time.Timer
	cancel     context.CancelFunc // stops the goroutine that drives progress
	goroutines sync.WaitGroup
	closed     bool
}

// Config is the configuration of the windows of a rank.
type Config struct {
	Engine *engine.Engine
	Direct bool // RDMA and atomics of the adapter where it has them, else only packets
}

// NewTable returns an empty table.
func NewTable(c Config) *Table { return &Table{Config: c, all: map[uint32]*Window{}} }

// add adds a window. The first window starts a goroutine that drives progress while the program
// computes, and the timer of liveness probes. The caller holds the engine's lock.
func (t *Table) add(w *Window) error {
	if t.closed {
		return engine.ErrClosed
	}
	if len(t.all) == 0 {
		ctx, cancel := context.WithCancel(context.Background())
		t.cancel = cancel
		t.goroutines.Go(func() { t.Engine.PollWhenIdle(ctx) })
		t.timer = time.AfterFunc(livenessInterval, t.checkLiveness)
	}
	t.all[w.comm.ContextID] = w
	return nil
}

func (t *Table) remove(w *Window) {
	if t.all[w.comm.ContextID] != w {
		return
	}
	delete(t.all, w.comm.ContextID)
	if len(t.all) == 0 {
		t.timer.Stop()
		t.cancel()
	}
}

// Stop deregisters the windows and waits for the goroutines. No window can be made afterwards.
func (t *Table) Stop() {
	t.Engine.Do(func(*protocol.Core) {
		t.closed = true
		for _, w := range t.all {
			w.deregisterMemory()
		}
	})
	t.goroutines.Wait()
}

// HandlePacket handles an active message of a window. It ignores packets of a window that was
// freed after the loss of a rank. An error is a protocol violation. The caller holds the engine's
// lock.
func (t *Table) HandlePacket(from int, h *envelope.Header, payload []byte) error {
	w := t.all[h.Context]
	if w == nil {
		return nil
	}
	r := w.comm.LocalRank(from)
	if r == comm.Undefined {
		return fmt.Errorf("window %s: packet of a rank that is not a member", w.comm.Name())
	}
	return w.handlePacket(w.eng.Core(), &w.peers[r], h, payload)
}

// OnRankLost breaks the windows of a lost rank. The caller holds the engine's lock.
func (t *Table) OnRankLost(rank int) {
	for _, w := range t.all {
		if r := w.comm.LocalRank(rank); r != comm.Undefined {
			w.onRankLost(w.eng.Core(), &w.peers[r])
		}
	}
}

// livenessInterval is the time between two checks of the waiting calls.
const livenessInterval = 500 * time.Millisecond

// checkLiveness sends liveness probes for the waiting calls of all windows.
func (t *Table) checkLiveness() {
	t.Engine.Do(func(core *protocol.Core) {
		if t.closed || len(t.all) == 0 {
			return
		}
		for _, w := range t.all {
			w.probeWaits(core)
		}
		t.timer.Reset(livenessInterval)
	})
}
