//go:build unix && !linux

package agent

import (
	"os/exec"
	"sync"
	"syscall"
)

// A processTree tracks the processes that ranks have started.
type processTree struct {
	mu       sync.Mutex
	groups   map[int]bool // and whether the rank itself still runs
	signaled map[int]bool // by SIGTERM
}

// newProcessTree returns an empty tree. On Linux it makes this process the parent of orphaned
// descendants.
func newProcessTree() *processTree {
	return &processTree{groups: map[int]bool{}, signaled: map[int]bool{}}
}

// startRank starts a rank.
func (t *processTree) startRank(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		t.groups[cmd.Process.Pid] = true
	}
	return err
}

// removeRank removes a rank after its exit.
func (t *processTree) removeRank(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups[cmd.Process.Pid] = false
	if syscall.Kill(-cmd.Process.Pid, 0) != nil {
		delete(t.groups, cmd.Process.Pid)
	}
}

// signalAll sends SIGTERM once to each remaining process, or SIGKILL, and returns the number of
// processes left, or of process groups where only those are known.
func (t *processTree) signalAll(kill bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for group, rank := range t.groups {
		err := syscall.Kill(-group, 0)
		switch {
		case err != nil && !rank:
			delete(t.groups, group)
		case kill:
			_ = syscall.Kill(-group, syscall.SIGKILL)
		case !t.signaled[group]:
			t.signaled[group] = true
			_ = syscall.Kill(-group, syscall.SIGTERM)
			_ = syscall.Kill(-group, syscall.SIGCONT)
		}
	}
	return len(t.groups)
}
