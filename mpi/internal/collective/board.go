package collective

import (
	"bytes"
	"runtime"

	"github.com/softrnic/softrnic/internal/sched"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// SharedBytes implements coll.SharedMemoryNet. Nonblocking calls do not use shared memory, because several may
// be in progress; nor do the messages that compare calls, because other ranks may make theirs
// in nonblocking calls.
func (n *callNet) SharedBytes() int {
	if c := n.comm; !c.sharesNode || n.op.form != blocking || c.fixedTag != 0 || n.tag&checkTag != 0 {
		return 0
	}
	return BoardSlotSize(n.comm.Size)
}

// Board implements coll.SharedMemoryNet.
func (n *callNet) Board() coll.Board {
	if !n.board.opened {
		n.board = boardCall{net: n, opened: true, board: n.openBoard()}
	}
	if n.board.board == nil {
		return nil
	}
	return &n.board
}

// openBoard locks the board of the communicator for a call and returns it, nil if there is
// none. All ranks get the same result.
func (n *callNet) openBoard() *shm.Board {
	c, s := n.comm, &n.comm.Shared
	s.mu.Lock()
	if s.Board == nil && !s.unavailable && n.round >= BoardThreshold {
		room := BoardSlotSize(c.Size)
		var seg *shm.Segment
		if seg, s.unavailable = n.createSegment(shm.BoardSize(c.Size, room)); seg != nil {
			s.Board = shm.NewBoard(seg.Bytes(), c.Size, room, c.Rank)
			s.Board.Bind(sched.BoundProcessor())
			s.seg, s.cleanup = seg, runtime.AddCleanup(c, func(seg *shm.Segment) { _ = seg.Close() }, seg)
		}
	}
	if s.Board == nil {
		s.mu.Unlock()
	} else {
		s.calls++
	}
	return s.Board
}

// closeBoard unlocks the board at the end of a call.
func (n *callNet) closeBoard() {
	if n.board.board != nil {
		s := &n.comm.Shared
		look := s.calls%spinsPerPoll == 0
		s.mu.Unlock()
		if look {
			n.comm.Engine.PollOnce()
		}
	}
	n.board = boardCall{}
}

// segmentNameSize is the size of the segment name in a message.
const segmentNameSize = 64

// createSegment creates a segment at rank 0 and maps it at all ranks. It is collective. The
// segment is nil if one rank cannot map it, which sets unavailable, or if a message fails.
func (n *callNet) createSegment(size int) (seg *shm.Segment, never bool) {
	var name [segmentNameSize]byte
	tag := n.tag
	n.tag = tag&^persistentTag | checkTag
	defer func() { n.tag = tag }()
	if n.Rank() == 0 {
		if made, err := shm.Create(size); err == nil {
			seg = made
			defer func() { _ = made.Unlink() }()
			copy(name[:], seg.Name())
		}
	}
	by := coll.Call{Net: struct{ coll.Net }{n}, Memory: &n.scratch} // messages
	err := by.Bcast(0, name[:])
	if err == nil && n.Rank() != 0 {
		seg, _ = n.comm.job.OpenSegment(string(name[:max(0, bytes.IndexByte(name[:], 0))]), size)
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
