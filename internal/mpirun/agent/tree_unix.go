//go:build unix && !linux

package agent

import (
	"os/exec"
	"sync"
	"syscall"
)

// tree is all that ranks have started and that is in their process groups.
type tree struct {
	mu     sync.Mutex
	groups map[int]bool // and whether the rank itself still runs
	told   map[int]bool // by SIGTERM
}

func newTree() *tree { return &tree{groups: map[int]bool{}, told: map[int]bool{}} }

// start starts a rank in a group of its own.
func (t *tree) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		t.groups[cmd.Process.Pid] = true
	}
	return err
}

// ended is a rank that was waited for. Its group lives on if there is somebody
// else in it.
func (t *tree) ended(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups[cmd.Process.Pid] = false
	if syscall.Kill(-cmd.Process.Pid, 0) != nil {
		delete(t.groups, cmd.Process.Pid)
	}
}

// signal ends all that is left, by one SIGTERM each, or by SIGKILL, and returns how
// many groups there are.
func (t *tree) signal(kill bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for group, rank := range t.groups {
		err := syscall.Kill(-group, 0)
		switch {
		case err != nil && !rank:
			delete(t.groups, group)
		case kill:
			_ = syscall.Kill(-group, syscall.SIGKILL)
		case !t.told[group]:
			t.told[group] = true
			_ = syscall.Kill(-group, syscall.SIGTERM)
			_ = syscall.Kill(-group, syscall.SIGCONT)
		}
	}
	return len(t.groups)
}
