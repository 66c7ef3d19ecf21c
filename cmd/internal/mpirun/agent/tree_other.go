//go:build !unix

package agent

import (
	"os"
	"os/exec"
	"sync"
)

// A processTree tracks the processes that ranks have started.
type processTree struct {
	mu    sync.Mutex
	ranks map[*os.Process]bool
}

// newProcessTree returns an empty tree. On Linux it makes this process the parent of orphaned
// descendants.
func newProcessTree() *processTree { return &processTree{ranks: map[*os.Process]bool{}} }

// startRank starts a rank.
func (t *processTree) startRank(cmd *exec.Cmd) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		t.ranks[cmd.Process] = true
	}
	return err
}

// removeRank removes a rank after its exit.
func (t *processTree) removeRank(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ranks, cmd.Process)
}

// signalAll sends SIGTERM once to each remaining process, or SIGKILL, and returns the number of
// processes left, or of process groups where only those are known.
func (t *processTree) signalAll(bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.ranks {
		_ = p.Kill()
	}
	return len(t.ranks)
}
