//go:build linux

package lab

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
)

//go:embed guest/faults
var faultsScript []byte

// Faults are what happens to RoCE packets on the cable, in netem's words (see
// tc-netem(8)); all other packets pass. The guest applies them, in both
// directions, since not every kernel on this side has netem.
type Faults struct {
	FromGuest, ToGuest string // "loss 1%"; "" for none
}

// SetFaults replaces the faults.
func (g *Guest) SetFaults(ctx context.Context, f Faults) error {
	_, err := g.Output(ctx, "/lab/faults", f.FromGuest, f.ToGuest)
	return err
}

// DroppedPackets returns how many packets the faults have dropped since they were set, of
// those that leave the guest and of those that go there.
func (g *Guest) DroppedPackets(ctx context.Context) (fromGuest, toGuest uint64, err error) {
	out, err := g.Output(ctx, "tc", "-s", "qdisc", "show")
	if err != nil {
		return 0, 0, err
	}
	lost := parseDropped(out)
	return lost["2:"], lost["3:"], nil
}

// droppedPattern is the line of tc -s qdisc that follows the one with the handle.
var droppedPattern = regexp.MustCompile(`(?m)^qdisc netem (\S+) .*\n Sent \d+ bytes \d+ pkt \(dropped (\d+),`)

// parseDropped reads the numbers of packets that each netem has dropped, by
// handle.
func parseDropped(text string) map[string]uint64 {
	lost := make(map[string]uint64)
	for _, m := range droppedPattern.FindAllStringSubmatch(text, -1) {
		lost[m[1]], _ = strconv.ParseUint(m[2], 10, 64)
	}
	return lost
}

// SetMTU sets the MTU of both ends of the cable, LargeMTU or SmallMTU. The
// adapters take theirs from it when they are opened.
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
