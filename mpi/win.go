package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Win is a window: memory of the ranks of a communicator that other ranks access by one-sided
// operations (MPI_Win). The target sees the results of operations, and the origin its stores,
// in the order of the synchronization calls: Fence; Post, Start, Complete and Wait; Lock and
// Unlock.
//
// Put, Get, Accumulate and the like start operations and do not wait. Their buffers belong to
// the window until a synchronization call, or Wait of their Request, completes them.
//
// # Atomicity
//
// Accumulate, GetAccumulate, FetchAndOp and CompareAndSwap on elements of one kind at one place
// are atomic with each other, for all origins. Single elements of Int64 and Uint64, aligned to
// 8 bytes, use the atomics of the adapter if it has the operation; else the target uses atomics
// of its processor. Both are atomic with each other and with package sync/atomic. The target
// combines elements of other kinds, and unaligned words, one call after the other. Put and Get
// are not atomic.
type Win struct {
	comm    *Comm // duplicate of the communicator: its context id identifies packets
	eng     *engine.Engine
	peers   []winPeer // by rank
	exposed []protocol.Registration
	control []uint64 // words of the lock, see lockWords

	// memory given to WinCreate or WinAllocate
	staticRegion     localRegion
	dynamic          *dynamicState // nil unless the window is dynamic
	epochs           epochs
	barrierSignals   []int // by round: signals that have arrived
	broken           error // error after the loss of a rank
	freed            bool
	waits            []*winWait
	pendingReplies   map[uint64]*transfer    // transfers that wait for replies, by id
	pendingFetchAdds map[uint64]func(uint64) // updates of locks that wait for replies, by id
	lastID           uint64
	idleTransfers    []*transfer
	packet           []byte // buffer of the packet to send
	reply            []byte // buffer of the reply to send
	in, out          rma.Target

	testRound, syncRound uint64 // rounds of engine.PollStats.FirstInRound, for Test and Sync
}

// winPeer is the state of a window for one rank.
type winPeer struct {
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

// WinCreate makes a window of memory of each rank of the communicator (MPI_Win_create). s may
// be empty, and differ in length and type between ranks. Displacements count elements of s. It
// may overlap other windows. Values with pointers are not allowed.
//
// The memory belongs to the window until Free: see Win.
func WinCreate[T any](c *Comm, s []T) (*Win, error) {
	mem, kind, err := datatype.Raw(s)
	w, werr := c.newWindow(mem, kind, sizeOf[T](), err, nil)
	if werr != nil {
		return nil, c.fail("win-create", "", werr)
	}
	return w, nil
}

// WinAllocate is WinCreate of new memory for n elements (MPI_Win_allocate).
func WinAllocate[T any](c *Comm, n int) (*Win, []T, error) {
	s, err := allocateElements[T](n)
	mem, kind, rawErr := datatype.Raw(s)
	err = cmp.Or(err, rawErr)
	w, err := c.newWindow(mem, kind, sizeOf[T](), err, nil)
	if err != nil {
		return nil, nil, c.fail("win-allocate", "", err)
	}
	return w, s, nil
}

// allocateElements returns memory for n elements, or an error if n is too large or negative.
func allocateElements[T any](n int) (s []T, err error) {
	defer func() {
		if recover() != nil { // make panics: n is out of range
			err = fmt.Errorf("%w: %d elements of %d bytes", ErrCount, n, sizeOf[T]())
		}
	}()
	return make([]T, n), nil
}

func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// newWindow makes a window of a rank's memory, collectively. It fails at all ranks if refused
// is set at one of them. d is set for a dynamic window, which has no memory.
func (c *Comm) newWindow(mem []byte, kind datatype.Kind, unit int, refused error, d *dynamicState) (*Win, error) {
	if err := c.checkUsable(); err != nil {
		return nil, err
	}
	own, err := c.deriveComm("win-create", c.Name()+".win", comm.RanksBelow(c.base.Size))
	if err != nil {
		return nil, err
	}
	w := &Win{comm: own, eng: c.base.Engine, staticRegion: localRegion{Memory: rma.Memory{Bytes: mem}}, dynamic: d,
		control: make([]uint64, lockWords), peers: make([]winPeer, c.base.Size), pendingReplies: map[uint64]*transfer{}, pendingFetchAdds: map[uint64]func(uint64){}}
	w.barrierSignals = make([]int, barrierRounds(c.base.Size))
	for r := range w.peers {
		w.peers[r].rank, w.peers[r].job = r, own.base.WorldRank(r)
	}
	w.eng.Do(func(*protocol.Core) {
		if refused == nil {
			refused = c.world.windows.add(c.world, w)
		}
	})
	mine, refused := w.encodeInfo(kind, unit, refused)
	theirs := make([]byte, len(mine))
	if err = c.Alltoall(Of(mine), Of(theirs)); err == nil {
		err = w.decodeInfo(theirs)
	}
	if refused != nil {
		err = refused
	}
	if err != nil {
		w.eng.Do(func(*protocol.Core) { w.deregisterMemory() })
		_ = own.Free()
		return nil, err
	}
	return w, nil
}

// Free frees a window (MPI_Win_free). All ranks call it outside of epochs; it returns after all
// have called it. It detaches attached memory. If a rank is lost Free does not wait. A second
// Free returns ErrWin.
func (w *Win) Free() error {
	if err := w.closeWindow(); err != nil {
		return w.fail("win-free", "", err)
	}
	return nil
}

func (w *Win) closeWindow() error {
	if _, err := w.lockEngine(); err != nil {
		return err
	}
	broken := w.broken
	var err error
	if broken == nil {
		err = w.epochs.checkClosed()
	}
	w.eng.Unlock()
	if err != nil {
		return err
	}
	if broken == nil {
		err = errors.Join(w.flushTargets(w.allRanks(), remoteCompletion), w.waitUnlocks(), w.fenceBarrier())
	}
	w.eng.Do(func(*protocol.Core) { w.deregisterMemory() })
	return errors.Join(err, w.comm.Free())
}

// waitUnlocks waits until all releases of locks have completed.
func (w *Win) waitUnlocks() error {
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
func (w *Win) deregisterMemory() {
	w.freed = true
	w.comm.world.windows.remove(w)
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

// Size returns the length of a rank's memory in bytes (MPI_WIN_SIZE), 0 for a dynamic window,
// Undefined for a rank out of range.
func (w *Win) Size(rank int) int {
	if !w.hasRank(rank) {
		return Undefined
	}
	return w.peers[rank].size
}

// Unit returns the displacement unit of a rank in bytes (MPI_WIN_DISP_UNIT), Undefined for a
// rank out of range.
func (w *Win) Unit(rank int) int {
	if !w.hasRank(rank) {
		return Undefined
	}
	return w.peers[rank].unit
}

// hasRank reports whether rank is in range.
func (w *Win) hasRank(rank int) bool { return !w.isNull() && rank >= 0 && rank < len(w.peers) }

// asComm returns the window's own communicator, the null communicator for the null window.
func (w *Win) asComm() *Comm {
	if w == nil {
		return nil
	}
	return w.comm
}

// Group returns the ranks of the window (MPI_Win_get_group), the null group for the null
// window.
func (w *Win) Group() *Group { return w.asComm().Group() }

// Name returns the name of the window in errors (MPI_Win_get_name), "null" for the null window.
func (w *Win) Name() string { return w.asComm().Name() }

// SetName sets the name of the window at this rank (MPI_Win_set_name).
func (w *Win) SetName(name string) { w.asComm().SetName(name) }

func (w *Win) fail(op, with string, err error) error { return w.asComm().fail(op, with, err) }

// lockEngine acquires the engine's lock for a call. It fails if the window is null or freed.
func (w *Win) lockEngine() (*protocol.Core, error) {
	if w.isNull() {
		return nil, errNullWin
	}
	core, err := w.eng.Lock()
	if err == nil && w.freed {
		w.eng.Unlock()
		err = errFreedWin
	}
	return core, err
}

// allRanks returns all ranks of the window.
func (w *Win) allRanks() []int { return comm.RanksBelow(len(w.peers)) }
