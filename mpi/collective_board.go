package mpi

import (
	"bytes"
	"runtime"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// Ranks of one node have memory in common, and their short collective calls use it:
// package coll says how, package shm what is in it. Here is how a communicator comes to
// its memory; how a rank waits there is in collective_wait.go.

// boardThreshold is from which of its calls on a communicator gets memory, when one can use
// it. Most communicators make few. Calls are counted, and not those that could use it:
// so ranks that have once not agreed what call they make do about the next.
const boardThreshold = 4

// boardSlotSize is for how many bytes of each rank there is room: less if they are many,
// so that a communicator of up to 256 takes half a megabyte.
func boardSlotSize(ranks int) int { return min(max(1<<10, 256<<10/ranks&^63), 16<<10) }

// sharedMemory is a communicator's memory.
type sharedMemory struct {
	mu          sync.Mutex // one call at a time, and it guards the rest
	calls       int        // so many calls have used it
	unavailable bool       // a rank cannot have it
	seg         *shm.Segment
	board       *shm.Board // nil: not yet, or never

	cleanup runtime.Cleanup // gives the memory of a communicator back that nobody has freed
	err     error           // why a wait has failed: ranks may be in different rounds since
}

// onOneNode reports whether all ranks are on one node, and may share memory.
func (c *Comm) onOneNode() bool {
	if c.world.o.NoShared || c.size < 2 {
		return false
	}
	m := c.world.manager
	for r := 1; r < c.size; r++ {
		if m.Node(c.worldRank(r)) != m.Node(c.worldRank(0)) {
			return false
		}
	}
	return true
}

// Room implements coll.SharedMemoryNet. Calls that do not block have no memory in common, since
// several may be under way, and none by which calls are compared, since others may make
// theirs in the background.
func (n *callNet) Room() int {
	if c := n.comm; !c.sharesNode || n.call.op.form != blocking || c.fixedTag != 0 || n.tag&checkTag != 0 {
		return 0
	}
	return boardSlotSize(n.comm.size)
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

// openBoard takes the communicator's board for a call, nil if there is none. All ranks
// come to the same end.
func (k *call) openBoard() *shm.Board {
	c, s := k.comm, &k.comm.sharedMemory
	s.mu.Lock()
	if s.board == nil && !s.unavailable && k.round >= boardThreshold {
		room := boardSlotSize(c.size)
		var seg *shm.Segment
		if seg, s.unavailable = k.createSegment(shm.BoardSize(c.size, room)); seg != nil {
			s.board = shm.NewBoard(seg.Bytes(), c.size, room, c.rank)
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

// closeBoard is the end of a call.
func (k *call) closeBoard() {
	if k.net.board.board != nil {
		s := &k.comm.sharedMemory
		look := s.calls%spinsPerPoll == 0
		s.mu.Unlock()
		if look {
			k.comm.eng.PollOnce()
		}
	}
	k.net.board = boardCall{}
}

// release gives the memory back, unless a call is stuck in it.
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

// segmentNameSize is the room for the name of a segment in a message.
const segmentNameSize = 64

// openSegment is another function in tests.
var openSegment = shm.Open

// createSegment is memory that all ranks have: rank 0 makes it and tells the others its
// name, and all hear whether all have it. It is nil if one has not, so that it is never
// there, or if messages fail.
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
		seg, _ = openSegment(string(name[:max(0, bytes.IndexByte(name[:], 0))]), size)
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
