package onesided

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
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

// Memory is the memory of a rank for a window.
type Memory struct {
	Bytes   []byte
	Kind    datatype.Kind
	Unit    int   // displacement unit in bytes
	Dynamic bool  // the window is dynamic and has no memory at first
	Err     error // the memory cannot be a window, so that CreateWindow fails at all ranks
}

// CreateWindow makes a window, collectively. c is a communicator of the window alone. exchange
// sends the i-th of equal parts of mine to rank i, and receives the i-th part of theirs from it.
func (t *Table) CreateWindow(c *comm.Comm, m Memory, exchange func(mine, theirs []byte) error) (*Window, error) {
	w := &Window{comm: c, eng: c.Engine, direct: t.Direct, staticRegion: localRegion{Memory: rma.Memory{Bytes: m.Bytes}}, control: make([]uint64, lockWords),
		peers: make([]peer, c.Size), pending: pendingReplies{transfers: map[uint64]*transfer{}, fetchAdds: map[uint64]func(uint64){}}}
	if m.Dynamic {
		w.dynamic = &dynamicState{}
	}
	w.barrierSignals = make([]int, barrierRounds(c.Size))
	for r := range w.peers {
		w.peers[r].rank, w.peers[r].job = r, c.WorldRank(r)
	}
	refused := m.Err
	w.eng.Do(func(*protocol.Core) {
		if refused == nil {
			refused = t.addWindow(w)
		}
	})
	mine, refused := w.encodeInfo(&m, refused)
	theirs := make([]byte, len(mine))
	err := exchange(mine, theirs)
	if err == nil {
		err = w.decodeInfo(theirs)
	}
	if refused != nil {
		err = refused
	}
	if err != nil {
		w.eng.Do(func(*protocol.Core) { t.removeWindow(w) })
		return nil, err
	}
	return w, nil
}

// FreeWindow frees a window, collectively (MPI_Win_free), and reports whether it is freed, possibly
// with an error. It is not if it was freed before, or if an epoch is open.
func (t *Table) FreeWindow(w *Window) (freed bool, err error) {
	if _, err := w.lockEngine(); err != nil {
		return false, err
	}
	broken := w.broken
	if broken == nil {
		err = w.epochs.checkClosed()
	}
	w.eng.Unlock()
	if err != nil {
		return false, err
	}
	if broken == nil {
		err = errors.Join(w.flushTargets(w.allRanks(), Remote), w.waitUnlocks(), w.fenceBarrier())
	}
	w.eng.Do(func(*protocol.Core) { t.removeWindow(w) })
	return true, err
}

// addWindow adds a window. The first window starts a goroutine that drives progress while the
// program computes, and the timer of liveness probes. The caller holds the engine's lock.
func (t *Table) addWindow(w *Window) error {
	if t.closed {
		return engine.ErrClosed
	}
	if len(t.all) == 0 {
		ctx, cancel := context.WithCancel(context.Background())
		t.cancel = cancel
		t.goroutines.Go(func() { t.Engine.PollWhenIdle(ctx, engine.IdleInterval) })
		t.timer = time.AfterFunc(livenessInterval, t.checkLiveness)
	}
	t.all[w.comm.ContextID] = w
	return nil
}

// removeWindow removes a window and deregisters its memory. The caller holds the engine's lock.
func (t *Table) removeWindow(w *Window) {
	w.deregisterMemory()
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
			t.removeWindow(w)
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

// deregisterMemory deregisters the memory of a window, which cannot be used any more. The caller
// holds the engine's lock.
func (w *Window) deregisterMemory() {
	w.freed = true
	for _, e := range w.exposed {
		w.eng.Fabric().DeregisterMemory(e)
	}
	w.exposed = nil
	if w.dynamic != nil {
		for _, local := range w.dynamic.regions {
			for _, holder := range local.holders {
				w.deregisterKey(holder)
			}
		}
	}
}
