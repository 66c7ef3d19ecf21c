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

// processors is how many each node of the job has, of those with more than one rank.
// Algorithms are chosen by it, so all ranks have to think the same: the first rank of
// each node tells the others. It also tells what of its options has to be the same.
type processors map[int]int

func processorsKey(node int) string { return fmt.Sprintf("processors/%d", node) }

// alike are the options that have to be the same at all ranks of a node.
func (o *Options) alike() string { return fmt.Sprintf("NoShared %t, Check %t", o.NoShared, o.Check) }

// ranksOf counts the ranks of each node.
func ranksOf(m pmi.Manager) map[int]int {
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

// tellProcessors is called before the ranks' first fence.
func tellProcessors(m pmi.Manager, o *Options) error {
	mine := m.Node(m.Rank())
	if m.Rank() != firstRankOf(m, mine) || ranksOf(m)[mine] == 1 {
		return nil
	}
	return m.Put(processorsKey(mine), fmt.Sprintf("%d %s", machineProcessors(), o.alike()))
}

// hearProcessors is called after it.
func hearProcessors(ctx context.Context, m pmi.Manager, o *Options) (processors, error) {
	p := processors{}
	for node, n := range ranksOf(m) {
		if n == 1 {
			continue
		}
		value, err := m.Get(ctx, processorsKey(node))
		if err != nil {
			first := firstRankOf(m, node)
			return nil, fmt.Errorf("processors of node %d, which rank %d (%s) has to tell: %w", node, first, (&whereabouts{manager: m}).of(first), err)
		}
		count, options, _ := strings.Cut(value, " ")
		if p[node], err = strconv.Atoi(count); err != nil || p[node] < 1 {
			return nil, fmt.Errorf("processors of node %d: %q is not a number of them", node, count)
		}
		if ours := o.alike(); node == m.Node(m.Rank()) && options != ours {
			return nil, fmt.Errorf("ranks of one node have other options: this one %s, the first one %s", ours, options)
		}
	}
	return p, nil
}

// of is how many processors the ranks of a communicator have together.
func (p processors) of(c *Comm) int {
	ranks := map[int]int{}
	for r := range c.size {
		ranks[c.world.manager.Node(c.job(r))]++
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

// machineProcessors is how many processors the machine has, or what it is a part of:
// a container. A rank may be bound to one of them, and its neighbours to others, so
// runtime.NumCPU is not enough.
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
	if limit, err := os.ReadFile("/sys/fs/cgroup/cpu.max"); err == nil { // of control groups, version 2
		if most := countQuota(string(limit)); most > 0 {
			n = min(n, most)
		}
	}
	return n
}

// countQuota is how many processors "200000 100000" allows, microseconds in so many
// microseconds; 0 if there is no limit.
func countQuota(limit string) int {
	quota, period, _ := strings.Cut(strings.TrimSpace(limit), " ")
	q, err := strconv.Atoi(quota)
	p, err2 := strconv.Atoi(period)
	if err != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0
	}
	return (q-1)/p + 1
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
