//go:build !unix

package agent

import (
	"os"
	"os/exec"
	"sync"
)

// processTree is the ranks: nothing else is found here.
type processTree struct {
	mu    sync.Mutex
	ranks map[*os.Process]bool
}

func newProcessTree() *processTree { return &processTree{ranks: map[*os.Process]bool{}} }

func (t *processTree) startRank(cmd *exec.Cmd) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		t.ranks[cmd.Process] = true
	}
	return err
}

func (t *processTree) removeRank(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ranks, cmd.Process)
}

// signalAll ends all ranks: there is no gentle way. It returns how many there are.
func (t *processTree) signalAll(bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.ranks {
		_ = p.Kill()
	}
	return len(t.ranks)
}
