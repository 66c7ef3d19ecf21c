//go:build interop && linux

package interop

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestAtomicsOnce has rxe and softrnic add to one word concurrently, in the memory of
// either, with packet loss. Every addition is executed once, and each returns the value
// that the one before it has stored.
func TestAtomicsOnce(t *testing.T) {
	g := lab.Need(t)
	const each, atOnce = 64, 8
	for _, target := range []string{"softrnic", "rxe"} {
		for _, fault := range []fault{
			{name: "clean"},
			{name: "loss from rxe", Faults: lab.Faults{FromGuest: "loss 10%"}},
			{name: "loss to rxe", Faults: lab.Faults{ToGuest: "loss 10%"}},
			{name: "duplicates", Faults: lab.Faults{FromGuest: "duplicate 20%", ToGuest: "duplicate 20%"}},
		} {
			cell(t, behaviourT, "both to "+target, []string{"atomics once each, on one word", fault.name}, fmt.Sprintf("at %s, %s", target, fault.name), func(t *testing.T) {
				setFaults(t, g, fault.Faults)
				b := open(t, g, target, families[0], rnic.Options{}, peer.Options{QPs: 2})
				linux := open(t, g, "rxe", families[0], rnic.Options{}, peer.Options{})
				soft, err := peer.OpenSoftrnic(rnic.Options{Addr: netip.AddrPortFrom(lab.HostIPv4, softPort(target))}, peer.Options{})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, soft.Close()) })
				adders := []peer.Side{linux, soft}
				o := verbs.ConnectOptions{MTU: verbs.MTU1024, MaxRdAtomic: atOnce, MaxDestRdAtomic: atOnce}
				for i, a := range adders {
					require.NoError(t, a.Connect(0, b.Endpoint(i), o))
					require.NoError(t, b.Connect(i, a.Endpoint(0), o))
				}
				require.NoError(t, b.Put(0, make([]byte, 8)))
				for round := range each / atOnce {
					for i := range atOnce {
						for _, a := range adders {
							require.NoError(t, a.PostSend(0, verbs.SendWR{Opcode: verbs.WRAtomicFetchAdd, Flags: verbs.SendSignaled,
								SGList: a.SGE(8*(round*atOnce+i), 8), RemoteAddr: b.Addr(0), RKey: b.RKey(), CompareAdd: 1}))
						}
					}
					for _, a := range adders {
						for _, wc := range poll(t, a, atOnce) {
							require.NoError(t, wc.Err())
						}
					}
				}
				var seen []uint64
				for _, a := range adders {
					olds, err := a.Get(0, 8*each)
					require.NoError(t, err)
					for old := range slices.Chunk(olds, 8) {
						seen = append(seen, binary.NativeEndian.Uint64(old))
					}
				}
				slices.Sort(seen)
				for i, old := range seen {
					require.EqualValues(t, i, old)
				}
				sum, err := b.Get(0, 8)
				require.NoError(t, err)
				require.EqualValues(t, 2*each, binary.NativeEndian.Uint64(sum))
			})
		}
	}
}

// softPort returns the port of the softrnic that adds: 4791 if the target is rxe, which
// supports no other, and another one if the target is the softrnic at 4791.
func softPort(target string) uint16 {
	if target == "softrnic" {
		return 4792
	}
	return 4791
}
