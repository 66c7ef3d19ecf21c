//go:build linux

package lab

import (
	"context"
	_ "embed"
	"fmt"
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

// SetMTU sets the MTU of both ends of the cable, LargeMTU or SmallMTU. The
// adapters take theirs from it when they are opened.
func (g *Guest) SetMTU(ctx context.Context, mtu int) error {
	if mtu == g.mtu {
		return nil
	}
	if _, err := g.Output(ctx, "ip", "link", "set", "eth0", "mtu", fmt.Sprint(mtu)); err != nil {
		return err
	}
	if err := ip("link", "set", dataTap, "mtu", fmt.Sprint(mtu)); err != nil {
		return err
	}
	g.mtu = mtu
	return nil
}
