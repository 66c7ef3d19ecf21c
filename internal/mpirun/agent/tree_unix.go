//go:build unix && !linux

package agent

import (
	"os/exec"
	"sync"
	"syscall"
)

// processTree is all that ranks have started and that is in their process groups.
type processTree struct {
	mu       sync.Mutex
	groups   map[int]bool // and whether the rank itself still runs
	signaled map[int]bool // by SIGTERM
}

func newProcessTree() *processTree {
	return &processTree{groups: map[int]bool{}, signaled: map[int]bool{}}
}

// startRank starts a rank in a group of its own.
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

// removeRank is a rank that was waited for. Its group lives on if there is somebody
// else in it.
func (t *processTree) removeRank(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups[cmd.Process.Pid] = false
	if syscall.Kill(-cmd.Process.Pid, 0) != nil {
		delete(t.groups, cmd.Process.Pid)
	}
}

// signalAll ends all that is left, by one SIGTERM each, or by SIGKILL, and returns how
// many groups there are.
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
