package collective

import (
	"runtime"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// Short collective calls among ranks of one node use shared memory: package coll has the
// algorithms, package shm the layout. A communicator creates its shared memory in a call (board.go),
// and its calls wait in it (boardwait.go).

// BoardThreshold is the sequence number of the first call of a communicator that creates shared
// memory. Most communicators make few calls. All collective calls count, not only those that
// could use shared memory, so that ranks whose calls once differed still agree on the number.
const BoardThreshold = 4

// BoardSlotSize returns the bytes of shared memory of each rank. It shrinks with the number of
// ranks: a communicator of up to 1024 ranks uses 2 MiB.
func BoardSlotSize(ranks int) int { return min(max(1<<10, 1024<<10/ranks&^63), 64<<10) }

// sharedMemory is the shared memory of a communicator.
type sharedMemory struct {
	mu          sync.Mutex // held during a call; guards the other fields
	calls       int        // number of calls that have used it
	skipSpins   int        // waits left that do not spin, because others need this processor
	unavailable bool       // a rank cannot map it
	seg         *shm.Segment
	Board       *shm.Board // nil: not created yet, or unavailable

	cleanup runtime.Cleanup // closes the segment of a communicator that is not freed
	err     error           // first failed wait; the ranks may be in different rounds since
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
	s.seg, s.Board, s.unavailable = nil, nil, true
}
