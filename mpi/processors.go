package mpi

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/mpi/pmi"
)

// processors is how many each node of the job has. Algorithms are chosen by it, so
// all ranks have to think the same: the first rank of each node tells the others.
type processors []int

func processorsKey(node int) string { return fmt.Sprintf("processors/%d", node) }

// tellProcessors is called before the ranks' first fence.
func tellProcessors(m pmi.Manager) error {
	node := m.Node(m.Rank())
	for r := range m.Rank() {
		if m.Node(r) == node {
			return nil // it tells
		}
	}
	return m.Put(processorsKey(node), strconv.Itoa(machineProcessors()))
}

// hearProcessors is called after it.
func hearProcessors(ctx context.Context, m pmi.Manager) (processors, error) {
	nodes := 0
	for r := range m.Size() {
		nodes = max(nodes, m.Node(r)+1)
	}
	p := make(processors, nodes)
	for node := range p {
		value, err := m.Get(ctx, processorsKey(node))
		if err != nil {
			return nil, fmt.Errorf("processors of node %d: %w", node, err)
		}
		if p[node], err = strconv.Atoi(value); err != nil || p[node] < 1 {
			return nil, fmt.Errorf("processors of node %d: %q is not a number of them", node, value)
		}
	}
	return p, nil
}

// of is how many processors the ranks of a communicator have together, 0 if nobody was
// asked: in a job of one.
func (p processors) of(c *Comm) int {
	if len(p) == 0 {
		return 0
	}
	ranks := make([]int, len(p))
	for r := range c.size {
		ranks[c.world.manager.Node(c.job(r))]++
	}
	total := 0
	for node, n := range ranks {
		total += min(n, p[node])
	}
	return total
}

// machineProcessors is how many processors the machine has, or what it is a part of:
// a container. A rank may be bound to one of them, and its neighbours to others, so
// runtime.NumCPU is not enough.
func machineProcessors() int {
	n := runtime.NumCPU()
	for _, file := range []string{"/sys/fs/cgroup/cpuset.cpus.effective", "/sys/devices/system/cpu/online"} { // cgroups(7), sysfs
		if list, err := os.ReadFile(file); err == nil {
			if listed := countList(string(list)); listed > 0 {
				return max(n, listed)
			}
		}
	}
	return n
}

// countList is how many numbers a list such as "0-3,8" has (cpuset(7)), 0 if it is
// none.
func countList(list string) (n int) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || a < 0 || b < a {
			return 0
		}
		n += b - a + 1
	}
	return n
}
