package onesided

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Errors of calls on a window.
var (
	ErrWin    = errors.New("mpi: invalid window")            // MPI_ERR_WIN
	ErrEpoch  = errors.New("mpi: wrong RMA synchronization") // MPI_ERR_RMA_SYNC
	ErrAttach = errors.New("mpi: invalid attach or detach")  // MPI_ERR_RMA_ATTACH

	errNull  = fmt.Errorf("%w: null handle", ErrWin)
	errFreed = fmt.Errorf("%w: freed", ErrWin)
)

// A Window is the state of a window at one rank. Its methods are safe for concurrent use. The
// nil Window is the null window, whose calls return ErrWin.
type Window struct {
	table   *Table
	comm    *comm.Comm // of the window alone: its context id identifies packets
	eng     *engine.Engine
	peers   []peer // by rank
	exposed []protocol.Registration
	control []uint64 // words of the lock, see lockWords

	// memory given to Create
	staticRegion     localRegion
	dynamic          *dynamicState // nil unless the window is dynamic
	epochs           epochs
	barrierSignals   []int // by round: signals that have arrived
	broken           error // error after the loss of a rank
	freed            bool
	waits            []*syncWait
	pendingReplies   map[uint64]*transfer    // transfers that wait for replies, by id
	pendingFetchAdds map[uint64]func(uint64) // updates of locks that wait for replies, by id
	lastID           uint64
	idleTransfers    []*transfer
	packet           []byte // buffer of the packet to send
	reply            []byte // buffer of the reply to send
	in, out          rma.Target

	testRound, syncRound uint64 // rounds of engine.PollStats.FirstInRound, for Test and Sync
}

// A peer is the state of a window for one rank.
type peer struct {
	rank            int // in the window
	job             int // in the job
	size, unit      int // of its memory and its displacement unit, in bytes
	kind            datatype.Kind
	staticRegion    remoteRegion             // its memory, unless the window is dynamic
	regions         rma.Spans[*remoteRegion] // attached memory that this rank has looked up
	control         envelope.Key             // key of the words of its lock
	direct, atomics bool                     // the adapter can do RDMA, and atomics
	epoch           peerEpoch
	sendQueue       sendQueue
	recvState       recvState
}

// Memory is the memory of a rank for a window.
type Memory struct {
	Bytes   []byte
	Kind    datatype.Kind
	Unit    int   // displacement unit in bytes
	Dynamic bool  // the window is dynamic and has no memory at first
	Err     error // the memory cannot be a window, so that Create fails at all ranks
}

// Create makes a window, collectively. c is a communicator of the window alone. exchange sends
// the i-th of equal parts of mine to rank i, and receives the i-th part of theirs from it.
func (t *Table) Create(c *comm.Comm, m Memory, exchange func(mine, theirs []byte) error) (*Window, error) {
	w := &Window{table: t, comm: c, eng: c.Engine, staticRegion: localRegion{Memory: rma.Memory{Bytes: m.Bytes}}, control: make([]uint64, lockWords),
		peers: make([]peer, c.Size), pendingReplies: map[uint64]*transfer{}, pendingFetchAdds: map[uint64]func(uint64){}}
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
			refused = t.add(w)
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
		w.eng.Do(func(*protocol.Core) { w.deregisterMemory() })
		return nil, err
	}
	return w, nil
}

// Free frees a window (MPI_Win_free) and reports whether it is freed, possibly with an error. It
// is not if it was freed before, or if an epoch is open.
func (w *Window) Free() (freed bool, err error) {
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
	w.eng.Do(func(*protocol.Core) { w.deregisterMemory() })
	return true, err
}

// waitUnlocks waits until all releases of locks have completed.
func (w *Window) waitUnlocks() error {
	return w.waitUntil("Free", func() bool {
		for r := range w.peers {
			if w.peers[r].sendQueue.lockUpdates > 0 {
				return false
			}
		}
		return true
	}, func(r int) bool { return w.peers[r].sendQueue.lockUpdates > 0 }, w.allRanks()...)
}

// deregisterMemory removes the window from the table and deregisters its memory. The caller holds the
// engine's lock.
func (w *Window) deregisterMemory() {
	w.freed = true
	w.table.remove(w)
	for _, e := range w.exposed {
		w.eng.Fabric().DeregisterMemory(e)
	}
	w.exposed = nil
	if w.dynamic != nil {
		for _, v := range w.dynamic.regions {
			for _, l := range v.holders {
				w.deregisterKey(l)
			}
		}
	}
}

// SizeOf returns the length of a rank's memory in bytes, comm.Undefined for a rank out of range.
func (w *Window) SizeOf(rank int) int {
	if !w.hasRank(rank) {
		return comm.Undefined
	}
	return w.peers[rank].size
}

// UnitOf returns the displacement unit of a rank in bytes, comm.Undefined for a rank out of range.
func (w *Window) UnitOf(rank int) int {
	if !w.hasRank(rank) {
		return comm.Undefined
	}
	return w.peers[rank].unit
}

// hasRank reports whether rank is in range.
func (w *Window) hasRank(rank int) bool { return w != nil && rank >= 0 && rank < len(w.peers) }

// lockEngine acquires the engine's lock for a call. It fails if the window is null or freed.
func (w *Window) lockEngine() (*protocol.Core, error) {
	if w == nil {
		return nil, errNull
	}
	core, err := w.eng.Lock()
	if err == nil && w.freed {
		w.eng.Unlock()
		err = errFreed
	}
	return core, err
}

// allRanks returns all ranks of the window.
func (w *Window) allRanks() []int { return comm.RanksBelow(len(w.peers)) }
