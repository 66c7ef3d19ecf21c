//go:build linux

package lab_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/interop/lab"
)

// The network drops every tenth packet from the guest, and its counters report how many.
func ExampleGuest() {
	work := func(ctx context.Context, g *lab.Guest) error { // from lab.Need
		if err := g.SetFaults(ctx, lab.Faults{FromGuest: "loss 10%"}); err != nil {
			return err
		}
		// Traffic of this process, or of a program in the guest.
		if _, err := g.Output(ctx, "ibv_rc_pingpong", "-d", lab.Device, "-g", fmt.Sprint(g.GIDIndex(lab.GuestIPv4)), lab.HostIPv4.String()); err != nil {
			return err
		}
		lost, _, err := g.DroppedPackets(ctx)
		if err != nil {
			return err
		}
		counters, err := g.Counters(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%d of %d packets lost\n", lost, counters["sent_pkts"])
		return nil
	}
	_ = work
	fmt.Println(lab.HostIPv4, lab.GuestIPv4)
	// Output: 192.0.2.1 192.0.2.2
}
