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

// tree is all that ranks have started: everything below this process.
type tree struct {
	mu    sync.Mutex
	ranks map[int]bool // children that somebody waits for
	told  map[int]bool // by SIGTERM
}

// newTree makes this process the parent of who loses its own.
func newTree() *tree {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // Linux 3.4
	return &tree{ranks: map[int]bool{}, told: map[int]bool{}}
}

// start starts a rank, which dies with this thread.
func (t *tree) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		t.ranks[cmd.Process.Pid] = true
	}
	return err
}

// ended is a rank that was waited for.
func (t *tree) ended(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ranks, cmd.Process.Pid)
}

// signal ends all that is left, by one SIGTERM each, or by SIGKILL, and returns how
// many processes there are.
func (t *tree) signal(kill bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := below(os.Getpid())
	if err != nil { // no /proc: ranks and their groups
		for pid := range t.ranks {
			all = append(all, running{pid: -pid})
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
		case !t.told[p.pid]:
			t.told[p.pid] = true
			_ = syscall.Kill(p.pid, syscall.SIGTERM)
			_ = syscall.Kill(p.pid, syscall.SIGCONT) // who is stopped hears it too
		}
	}
	return left
}

// running is a process as /proc tells it.
type running struct {
	pid, parent int
	dead        bool // and not waited for
}

// below returns the descendants of a process.
func below(pid int) (list []running, err error) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return nil, err
	}
	children := map[int][]running{}
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
		children[parent] = append(children[parent], running{pid: n, parent: parent, dead: fields[0][0] == 'Z' || fields[0][0] == 'X'})
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
