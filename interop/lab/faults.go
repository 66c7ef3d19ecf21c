//go:build linux

package lab

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed guest/faults
var faultsScript []byte

// Faults are the faults injected into RoCE packets on the data link, in the syntax of
// tc-netem(8). Other packets are not affected. The guest injects them in both directions, since
// not every host kernel has netem.
type Faults struct {
	FromGuest, ToGuest string // for example "loss 1%"; "" for none
}

// SetFaults replaces the injected faults.
func (g *Guest) SetFaults(ctx context.Context, f Faults) error {
	_, err := g.Output(ctx, "/lab/faults", f.FromGuest, f.ToGuest)
	return err
}

// DroppedPackets returns the number of packets that the faults have dropped since SetFaults, for
// each direction.
func (g *Guest) DroppedPackets(ctx context.Context) (fromGuest, toGuest uint64, err error) {
	out, err := g.Output(ctx, "tc", "-s", "qdisc", "show")
	if err != nil {
		return 0, 0, err
	}
	lost := parseDropped(out)
	return lost["2:"], lost["3:"], nil
}

// droppedPattern matches a netem line of "tc -s qdisc" and the statistics after it.
var droppedPattern = regexp.MustCompile(`(?m)^qdisc netem (\S+) .*\n Sent \d+ bytes \d+ pkt \(dropped (\d+),`)

// parseDropped returns the number of packets that each netem has dropped, by handle.
func parseDropped(text string) map[string]uint64 {
	lost := make(map[string]uint64)
	for _, m := range droppedPattern.FindAllStringSubmatch(text, -1) {
		lost[m[1]], _ = strconv.ParseUint(m[2], 10, 64)
	}
	return lost
}

// SetMTU sets the MTU of both sides of the data link to LargeMTU or SmallMTU. Adapters adopt it
// when they are opened.
func (g *Guest) SetMTU(ctx context.Context, mtu int) error {
	if mtu == g.mtu {
		return nil
	}
	if _, err := g.Output(ctx, "ip", "link", "set", "eth0", "mtu", fmt.Sprint(mtu)); err != nil {
		return err
	}
	if err := runIP("link", "set", dataTap, "mtu", fmt.Sprint(mtu)); err != nil {
		return err
	}
	g.mtu = mtu
	return nil
}

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
