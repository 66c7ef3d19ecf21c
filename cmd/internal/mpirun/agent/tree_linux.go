package agent

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A processTree tracks the processes that ranks have started.
type processTree struct {
	mu       sync.Mutex
	ranks    map[int]bool // children with a waiter
	signaled map[int]bool // by SIGTERM
}

// newProcessTree returns an empty tree. On Linux it makes this process the parent of orphaned
// descendants.
func newProcessTree() *processTree {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // Linux 3.4
	return &processTree{ranks: map[int]bool{}, signaled: map[int]bool{}}
}

// startRank starts a rank.
func (t *processTree) startRank(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		t.ranks[cmd.Process.Pid] = true
	}
	return err
}

// removeRank removes a rank after its exit.
func (t *processTree) removeRank(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ranks, cmd.Process.Pid)
}

// signalAll sends SIGTERM once to each remaining process, or SIGKILL, and returns the number of
// processes left, or of process groups where only those are known.
func (t *processTree) signalAll(kill bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := descendants(os.Getpid())
	if err != nil { // no /proc: ranks and their groups
		for pid := range t.ranks {
			all = append(all, processInfo{pid: -pid})
		}
	}
	left := 0
	for _, p := range all {
		if p.dead {
			if p.parent == os.Getpid() && !t.ranks[p.pid] {
				var status syscall.WaitStatus
				_, _ = syscall.Wait4(p.pid, &status, syscall.WNOHANG, nil)
			}
			continue
		}
		left++
		switch {
		case kill:
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		case !t.signaled[p.pid]:
			t.signaled[p.pid] = true
			_ = syscall.Kill(p.pid, syscall.SIGTERM)
			_ = syscall.Kill(p.pid, syscall.SIGCONT) // so that a stopped process handles it
		}
	}
	return left
}

// A processInfo is a process as listed in /proc.
type processInfo struct {
	pid, parent int
	dead        bool // and not waited for
}

// descendants returns the descendants of a process.
func descendants(pid int) (list []processInfo, err error) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return nil, err
	}
	children := map[int][]processInfo{}
	for _, entry := range all {
		n, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue // it has just ended
		}
		// "pid (name) state parent ...": the name may have anything in it.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		children[parent] = append(children[parent], processInfo{pid: n, parent: parent, dead: fields[0][0] == 'Z' || fields[0][0] == 'X'})
	}
	for next := []int{pid}; len(next) > 0; {
		var further []int
		for _, parent := range next {
			for _, p := range children[parent] {
				list = append(list, p)
				further = append(further, p.pid)
			}
			delete(children, parent)
		}
		next = further
	}
	return list, nil
}
