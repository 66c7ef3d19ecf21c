package dcbench

import (
	"fmt"

	"github.com/softrnic/softrnic/datacutter"
)

// hostName returns the name of a process.
func hostName(rank int) string { return fmt.Sprintf("process%02d", rank) }

// placeFilters places the filter groups of an application on processes. The last filters run on
// the first process. Going backwards, each other filter runs on the process with the fewest
// filters, except for that of its successor. With two processes, the filters of a group
// alternate.
func (p *program) placeFilters(processes int) (l datacutter.Layout) {
	last := len(p.filters) - 1
	load := make([]int, processes) // filters on each process
	load[0] = p.groups
	for group := range p.groups {
		at := 0
		for f := last; f >= 0; f-- {
			if f < last {
				at = leastLoaded(load, at)
				load[at]++
			}
			l = append(l, datacutter.Placement{Group: group, Filter: p.filters[f], Host: hostName(at)})
		}
	}
	return l
}

// leastLoaded returns the first process with the fewest filters, except for one process.
func leastLoaded(load []int, except int) int {
	best := -1
	for i, n := range load {
		if i != except && (best < 0 || n < load[best]) {
			best = i
		}
	}
	return best
}
