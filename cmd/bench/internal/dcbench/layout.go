package dcbench

import (
	"fmt"

	"github.com/softrnic/softrnic/datacutter"
)

// hostName is the name of a process.
func hostName(rank int) string { return fmt.Sprintf("process%02d", rank) }

// placeFilters places an application's groups on so many processes: the last filters
// on the first, and each of the others, from there back, on the one with the
// fewest that does not have the filter it sends to. With two processes the
// filters of a group alternate.
func (p *program) placeFilters(processes int) (l datacutter.Layout) {
	last := len(p.filters) - 1
	has := make([]int, processes)
	has[0] = p.groups
	for group := range p.groups {
		at := 0
		for f := last; f >= 0; f-- {
			if f < last {
				at = leastLoaded(has, at)
				has[at]++
			}
			l = append(l, datacutter.Placement{Group: group, Filter: p.filters[f], Host: hostName(at)})
		}
	}
	return l
}

// leastLoaded is the first process with the fewest filters, except one.
func leastLoaded(has []int, except int) int {
	best := -1
	for i, n := range has {
		if i != except && (best < 0 || n < has[best]) {
			best = i
		}
	}
	return best
}
