package collective

import (
	"bytes"
	"runtime"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// Short collective calls among ranks of one node use shared memory: package coll has the
// algorithms, package shm the layout. This file creates the shared memory of a communicator;
// collective_wait.go waits in it.

// BoardThreshold is the sequence number of the first call of a communicator that creates shared
// memory. Most communicators make few calls. All collective calls count, not only those that
// could use shared memory, so that ranks whose calls once differed still agree on the number.
const BoardThreshold = 4

// BoardSlotSize returns the bytes of shared memory of each rank. It shrinks with the number of
// ranks: a communicator of up to 256 ranks uses 512 KiB.
func BoardSlotSize(ranks int) int { return min(max(1<<10, 256<<10/ranks&^63), 16<<10) }

// sharedMemory is the shared memory of a communicator.
type sharedMemory struct {
	mu          sync.Mutex // held during a call; guards the other fields
	calls       int        // number of calls that have used it
	unavailable bool       // a rank cannot map it
	seg         *shm.Segment
	board       *shm.Board // nil: not created yet, or unavailable

	cleanup runtime.Cleanup // closes the segment of a communicator that is not freed
	err     error           // first failed wait; the ranks may be in different rounds since
}

// SharedBytes implements coll.SharedMemoryNet. Nonblocking calls do not use shared memory, because several may
// be in progress; nor do the messages that compare calls, because other ranks may make theirs
// in nonblocking calls.
func (n *callNet) SharedBytes() int {
	if c := n.comm; !c.sharesNode || n.call.op.form != blocking || c.fixedTag != 0 || n.tag&checkTag != 0 {
		return 0
	}
	return BoardSlotSize(n.comm.Size)
}

// Board implements coll.SharedMemoryNet.
func (n *callNet) Board() coll.Board {
	if !n.board.opened {
		n.board = boardCall{net: n, opened: true, board: n.call.openBoard()}
	}
	if n.board.board == nil {
		return nil
	}
	return &n.board
}

// openBoard locks the board of the communicator for a call and returns it, nil if there is
// none. All ranks get the same result.
func (k *call) openBoard() *shm.Board {
	c, s := k.comm, &k.comm.sharedMemory
	s.mu.Lock()
	if s.board == nil && !s.unavailable && k.round >= BoardThreshold {
		room := BoardSlotSize(c.Size)
		var seg *shm.Segment
		if seg, s.unavailable = k.createSegment(shm.BoardSize(c.Size, room)); seg != nil {
			s.board = shm.NewBoard(seg.Bytes(), c.Size, room, c.Rank)
			s.seg, s.cleanup = seg, runtime.AddCleanup(c, func(seg *shm.Segment) { _ = seg.Close() }, seg)
		}
	}
	if s.board == nil {
		s.mu.Unlock()
	} else {
		s.calls++
	}
	return s.board
}

// closeBoard unlocks the board at the end of a call.
func (k *call) closeBoard() {
	if k.net.board.board != nil {
		s := &k.comm.sharedMemory
		look := s.calls%spinsPerPoll == 0
		s.mu.Unlock()
		if look {
			k.comm.Engine.PollOnce()
		}
	}
	k.net.board = boardCall{}
}

// release closes the segment, unless a call is stuck in it.
func (s *sharedMemory) release() {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if s.seg != nil {
		s.cleanup.Stop()
		_ = s.seg.Close()
	}
	s.seg, s.board, s.unavailable = nil, nil, true
}

// segmentNameSize is the size of the segment name in a message.
const segmentNameSize = 64

// OpenSegment is replaced in tests.
var OpenSegment = shm.Open

// createSegment creates a segment at rank 0 and maps it at all ranks. It is collective. The
// segment is nil if one rank cannot map it, which sets unavailable, or if a message fails.
func (k *call) createSegment(size int) (seg *shm.Segment, never bool) {
	var name [segmentNameSize]byte
	tag := k.net.tag
	k.net.tag = tag&^persistentTag | checkTag
	defer func() { k.net.tag = tag }()
	if k.net.Rank() == 0 {
		if made, err := shm.Create(size); err == nil {
			seg = made
			defer func() { _ = made.Unlink() }()
			copy(name[:], seg.Name())
		}
	}
	by := coll.Call{Net: struct{ coll.Net }{&k.net}, Memory: &k.scratch} // messages
	err := by.Bcast(0, name[:])
	if err == nil && k.net.Rank() != 0 {
		seg, _ = OpenSegment(string(name[:max(0, bytes.IndexByte(name[:], 0))]), size)
	}
	have := []byte{0}
	if seg != nil {
		have[0] = 1
	}
	if err == nil {
		err = by.Allreduce(have, have, coll.Reduction{Size: 1, Commutative: true, Reduce: func(inout, in []byte) error {
			inout[0] &= in[0]
			return nil
		}})
	}
	if seg != nil && (err != nil || have[0] == 0) {
		_ = seg.Close()
		seg = nil
	}
	return seg, err == nil && have[0] == 0
}
