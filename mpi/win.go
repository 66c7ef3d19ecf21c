package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Win is a window: memory of the ranks of a communicator that the others read and
// write without their help (MPI_Win). Its owner sees what they have done, and they
// what it has, in the order that the calls of synchronisation make: Fence; Post,
// Start, Complete and Wait; Lock and Unlock.
//
// Operations are begun by Put, Get, Accumulate and their like, which do not wait.
// Their buffers belong to the window until a call of synchronisation, or Wait of
// their Request, has said that they are done.
//
// # What is atomic
//
// Accumulate, GetAccumulate, FetchAndOp and CompareAndSwap on elements of one kind
// at one place are atomic with each other, whoever calls them. Of Int64 and Uint64
// at a multiple of 8 in memory single elements go by atomics of the adapter, where
// it has the operation, and all else by operations of the processor at the target.
// The two are atomic with each other, and with package sync/atomic. Elements of all
// other kinds, and words at other addresses, are always combined at the target,
// one call after the other. Put and Get are not atomic.
type Win struct {
	comm    *Comm // of its own: its numbers tell packets apart
	eng     *engine.Engine
	peers   []winPeer // by rank
	exposed []protocol.Registration
	control []uint64 // see lockWords

	// The engine's lock guards the rest.
	staticRegion     localRegion   // that it was made of
	dynamic          *dynamicState // nil unless its memory is attached
	epochs           epochs
	barrierSignals   []int // by round: signals that have come
	broken           error // for good
	freed            bool
	waits            []*winWait
	pendingReplies   map[uint64]*transfer    // that wait for replies, by number
	pendingFetchAdds map[uint64]func(uint64) // words of locks, the same
	lastID           uint64
	idleTransfers    []*transfer
	packet           []byte // that leaves
	reply            []byte // that leaves
	in, out          rma.Target

	testRound, syncRound uint64 // engine.Polls.FirstInRound of Test and Sync
}

// winPeer is a rank of a window.
type winPeer struct {
	rank            int // in the window
	job             int // in the job
	size, unit      int // of its memory, in bytes
	kind            datatype.Kind
	staticRegion    remoteRegion             // its memory, unless the window is dynamic
	regions         rma.Spans[*remoteRegion] // that it has attached and this rank has asked for
	control         envelope.Key             // for us
	direct, atomics bool                     // the adapter moves memory, and has atomics
	epoch           peerEpoch
	sendQueue       sendQueue
	recvState       recvState
}

// WinCreate makes a window of memory that each rank of the communicator has, or
// has not: s may be empty, and of another length and type everywhere
// (MPI_Win_create). Displacements count elements of s. It may overlap other
// windows. What values have pointers in them can be no window.
//
// Until Free the memory is the window's: see Win.
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
	s, err := allocate[T](n)
	mem, kind, rawErr := datatype.Raw(s)
	err = cmp.Or(err, rawErr)
	w, err := c.newWindow(mem, kind, sizeOf[T](), err, nil)
	if err != nil {
		return nil, nil, c.fail("win-allocate", "", err)
	}
	return w, s, nil
}

// allocate returns memory for n elements.
func allocate[T any](n int) (s []T, err error) {
	defer func() {
		if recover() != nil { // more than an address can tell
			err = fmt.Errorf("%w: %d elements of %d bytes", ErrCount, n, sizeOf[T]())
		}
	}()
	return make([]T, n), nil
}

func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// newWindow makes a window of a rank's memory, unless there is something wrong with
// it or another rank's. A dynamic one has none.
func (c *Comm) newWindow(mem []byte, kind datatype.Kind, unit int, refused error, d *dynamicState) (*Win, error) {
	if err := c.checkUsable(); err != nil {
		return nil, err
	}
	own, err := c.deriveComm("win-create", c.Name()+".win", ranksBelow(c.size))
	if err != nil {
		return nil, err
	}
	w := &Win{comm: own, eng: c.eng, staticRegion: localRegion{Memory: rma.Memory{Bytes: mem}}, dynamic: d,
		control: make([]uint64, lockWords), peers: make([]winPeer, c.size), pendingReplies: map[uint64]*transfer{}, pendingFetchAdds: map[uint64]func(uint64){}}
	w.barrierSignals = make([]int, barrierRounds(c.size))
	for r := range w.peers {
		w.peers[r].rank, w.peers[r].job = r, own.worldRank(r)
	}
	w.eng.Do(func(*protocol.Core) {
		if refused == nil {
			refused = c.world.windows.add(c.world, w)
		}
		if refused == nil && d != nil {
			refused = w.checkPacketSize()
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
		w.eng.Do(func(*protocol.Core) { w.deregister() })
		_ = own.Free()
		return nil, err
	}
	return w, nil
}

// ranksBelow is the numbers below n.
func ranksBelow(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Free ends a window (MPI_Win_free): all ranks call it, outside of epochs, and it
// returns when all have. What is attached to it need not be detached before. Of a
// window that has lost a rank it does not wait.
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
		err = errors.Join(w.flush(w.allRanks(), remoteCompletion), w.waitUnlocks(), w.fenceBarrier())
	}
	w.eng.Do(func(*protocol.Core) { w.deregister() })
	return errors.Join(err, w.comm.Free())
}

// waitUnlocks waits until all locks that were given back are.
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

// deregister takes the window's memory back.
func (w *Win) deregister() {
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

// Size is the length of a rank's memory in bytes (MPI_WIN_SIZE): of a dynamic window 0,
// and Undefined of a rank that is not there.
func (w *Win) Size(rank int) int {
	if !w.hasRank(rank) {
		return Undefined
	}
	return w.peers[rank].size
}

// Unit returns the displacement unit of a rank in bytes (MPI_WIN_DISP_UNIT), Undefined of
// a rank that is not there.
func (w *Win) Unit(rank int) int {
	if !w.hasRank(rank) {
		return Undefined
	}
	return w.peers[rank].unit
}

// hasRank reports whether a rank is one of the window.
func (w *Win) hasRank(rank int) bool { return !w.isNull() && rank >= 0 && rank < len(w.peers) }

// asComm returns the window's own communicator, the null communicator of the null window.
func (w *Win) asComm() *Comm {
	if w == nil {
		return nil
	}
	return w.comm
}

// Group is the window's ranks (MPI_Win_get_group), the null group of the null window.
func (w *Win) Group() *Group { return w.asComm().Group() }

// Name returns the name of the window in errors (MPI_Win_get_name), "null" of the null window.
func (w *Win) Name() string { return w.asComm().Name() }

// SetName gives it another name, which is this rank's own business
// (MPI_Win_set_name).
func (w *Win) SetName(name string) { w.asComm().SetName(name) }

func (w *Win) fail(op, with string, err error) error { return w.asComm().fail(op, with, err) }

// lockEngine takes the engine's lock for a call.
func (w *Win) lockEngine() (*protocol.Core, error) {
	if w.isNull() {
		return nil, errNullWin
	}
	core, err := w.eng.Lock()
	if err == nil && w.freed {
		w.eng.Unlock()
		err = ErrWin
	}
	return core, err
}

// allRanks is all ranks.
func (w *Win) allRanks() []int { return ranksBelow(len(w.peers)) }
