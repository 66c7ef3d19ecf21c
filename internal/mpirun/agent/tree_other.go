//go:build !unix

package agent

import (
	"os"
	"os/exec"
	"sync"
)

// tree is the ranks: nothing else is found here.
type tree struct {
	mu    sync.Mutex
	ranks map[*os.Process]bool
}

func newTree() *tree { return &tree{ranks: map[*os.Process]bool{}} }

func (t *tree) start(cmd *exec.Cmd) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		t.ranks[cmd.Process] = true
	}
	return err
}

func (t *tree) ended(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ranks, cmd.Process)
}

// signal ends all ranks: there is no gentle way. It returns how many there are.
func (t *tree) signal(bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.ranks {
		_ = p.Kill()
	}
	return len(t.ranks)
}
