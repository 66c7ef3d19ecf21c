//go:build linux

package lab

import (
	"context"
	"strconv"
	"strings"
)

// Counters returns the hw_counters of the guest's adapter by name (see rdma-statistic(8)).
func (g *Guest) Counters(ctx context.Context) (map[string]uint64, error) {
	out, err := g.Output(ctx, "sh", "-c", "cd /sys/class/infiniband/"+Device+"/ports/1/hw_counters && grep -H . *")
	if err != nil {
		return nil, err
	}
	return parseCounters(out), nil
}

// parseCounters parses lines of the form NAME:NUMBER.
func parseCounters(text string) map[string]uint64 {
	counters := make(map[string]uint64)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			counters[name] = n
		}
	}
	return counters
}
