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

// processors is the number of processors of each node with more than one rank. The choice of
// algorithms depends on it and must be the same at all ranks, so the first rank of each node
// publishes its number, along with the options that must be equal within a node.
type processors map[int]int

func processorsKey(node int) string { return fmt.Sprintf("processors/%d", node) }

// commonOptions returns the options that must be equal at all ranks of a node.
func (o *Options) commonOptions() string {
	return fmt.Sprintf("NoShared %t, Check %t", o.NoShared, o.Check)
}

// ranksPerNode returns the number of ranks of each node.
func ranksPerNode(m pmi.Manager) map[int]int {
	ranks := map[int]int{}
	for r := range m.Size() {
		ranks[m.Node(r)]++
	}
	return ranks
}

// firstRankOf returns the lowest rank on a node.
func firstRankOf(m pmi.Manager, node int) (rank int) {
	for m.Node(rank) != node {
		rank++
	}
	return rank
}

// publishProcessors must be called before the first fence.
func publishProcessors(m pmi.Manager, o *Options) error {
	mine := m.Node(m.Rank())
	if m.Rank() != firstRankOf(m, mine) || ranksPerNode(m)[mine] == 1 {
		return nil
	}
	return m.Put(processorsKey(mine), fmt.Sprintf("%d %s", machineProcessors(), o.commonOptions()))
}

// readProcessors must be called after the first fence. It fails if the options of this rank and
// of the first rank of its node differ.
func readProcessors(ctx context.Context, m pmi.Manager, o *Options) (processors, error) {
	p := processors{}
	for node, n := range ranksPerNode(m) {
		if n == 1 {
			continue
		}
		value, err := m.Get(ctx, processorsKey(node))
		if err != nil {
			first := firstRankOf(m, node)
			return nil, fmt.Errorf("processors of node %d, which rank %d (%s) publishes: %w", node, first, (&rankLocations{manager: m}).lookup(first), err)
		}
		count, options, _ := strings.Cut(value, " ")
		if p[node], err = strconv.Atoi(count); err != nil || p[node] < 1 {
			return nil, fmt.Errorf("processors of node %d: %q is not a number", node, count)
		}
		if ours := o.commonOptions(); node == m.Node(m.Rank()) && options != ours {
			return nil, fmt.Errorf("options differ within the node: %s at this rank, %s at the first rank", ours, options)
		}
	}
	return p, nil
}

// countFor returns the number of processors that the ranks of a communicator have together.
func (p processors) countFor(c *Comm) int {
	ranks := map[int]int{}
	for r := range c.base.Size {
		ranks[c.world.manager.Node(c.base.WorldRank(r))]++
	}
	total := 0
	for node, n := range ranks {
		if cpus, ok := p[node]; ok {
			n = min(n, cpus)
		}
		total += n
	}
	return total
}

// machineProcessors returns the number of processors of the machine or the container.
// runtime.NumCPU is not enough: it counts the processors that this rank is bound to.
func machineProcessors() int {
	n := runtime.NumCPU()
	for _, file := range []string{"/sys/fs/cgroup/cpuset.cpus.effective", "/sys/devices/system/cpu/online"} { // cgroups(7), sysfs
		if list, err := os.ReadFile(file); err == nil {
			if listed := countList(string(list)); listed > 0 {
				n = max(n, listed)
				break
			}
		}
	}
	if limit, err := os.ReadFile("/sys/fs/cgroup/cpu.max"); err == nil { // cgroup v2
		if most := countQuota(string(limit)); most > 0 {
			n = min(n, most)
		}
	}
	return n
}

// countQuota returns the number of processors that a quota such as "200000 100000" allows
// (microseconds of CPU time in each period of microseconds), 0 if there is no limit.
func countQuota(limit string) int {
	quota, period, _ := strings.Cut(strings.TrimSpace(limit), " ")
	q, err := strconv.Atoi(quota)
	p, err2 := strconv.Atoi(period)
	if err != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0
	}
	return (q-1)/p + 1
}

// countList returns the number of elements of a list such as "0-3,8" (cpuset(7)), 0 if the list
// is malformed.
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
