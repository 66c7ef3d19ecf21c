//go:build interop && linux

package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// fault is one thing that the network does to packets, in one direction.
type fault struct {
	name string
	lab.Faults
}

// faults are each of the network's ways, in each direction.
func faults() []fault {
	list := []fault{{name: "clean"}}
	for _, f := range []struct{ name, words string }{
		{"loss", "loss 1%"},
		{"reorder", "delay 4ms reorder 99%"}, // one in a hundred is late
		{"duplicate", "duplicate 2%"},
		{"corrupt", "corrupt 1%"},
	} {
		list = append(list, fault{f.name + " from rxe", lab.Faults{FromGuest: f.words}}, fault{f.name + " to rxe", lab.Faults{ToGuest: f.words}})
	}
	return list
}

// setFaults lets a network fail for the time of a test.
func setFaults(t testing.TB, g *lab.Guest, f lab.Faults) {
	t.Helper()
	require.NoError(t, g.SetFaults(context.Background(), f))
	if f != (lab.Faults{}) {
		t.Cleanup(func() { require.NoError(t, g.SetFaults(context.Background(), lab.Faults{})) })
	}
}

// sizes are message sizes around the MTU and up to 8 MiB.
func sizes(mtu int) []int {
	return []int{0, 1, 8, mtu - 1, mtu, mtu + 1, 3*mtu + 5, 64<<10 + 3, 1 << 20, 8 << 20}
}

// TestReliableData: SEND, WRITE and READ carry the bytes, in every size.
func TestReliableData(t *testing.T) {
	g := lab.Need(t)
	for _, k := range kinds {
		for _, f := range families {
			for _, mtu := range []verbs.MTU{verbs.MTU1024, verbs.MTU4096} {
				for _, fault := range faults() {
					t.Run(fmt.Sprintf("%v %s MTU %v %s", k, f.name, mtu, fault.name), func(t *testing.T) {
						setFaults(t, g, fault.Faults)
						list := sizes(mtu.Bytes())
						size := list[len(list)-1]
						a := open(t, g, k.a, f, rnic.Options{}, peer.Options{Memory: size})
						b := open(t, g, k.b, f, rnic.Options{}, peer.Options{Memory: size})
						require.NoError(t, peer.Connect(a, b, 1, verbs.ConnectOptions{MTU: mtu}))
						for _, n := range list {
							t0 := time.Now()
							transfer(t, a, b, n)
							t.Log(n, time.Since(t0))
						}
					})
				}
			}
		}
	}
}

// transfer moves n bytes by every operation and compares them.
func transfer(t testing.TB, a, b peer.End, n int) {
	t.Helper()
	seed := uint32(n)
	check := func(end peer.End, what string) {
		t.Helper()
		sum, err := end.Sum(0, n)
		require.NoError(t, err)
		require.Equal(t, peer.PatternSum(n, seed), sum, "%s of %d bytes", what, n)
		seed++
	}
	send := func(wr verbs.SendWR, receives bool) {
		t.Helper()
		if receives {
			require.NoError(t, b.PostRecv(0, 1, b.SGE(0, n)))
		}
		wr.Flags, wr.SGList, wr.Imm = verbs.SendSignaled, a.SGE(0, n), 0x12345678
		wr.RemoteAddr, wr.RKey = b.Addr(0), b.RKey()
		require.NoError(t, a.PostSend(0, wr))
		if receives {
			wc := poll(t, b, 1)[0]
			require.NoError(t, wc.Err())
			require.EqualValues(t, n, wc.ByteLen)
			if wr.Opcode != verbs.WRSend {
				require.NotZero(t, wc.Flags&verbs.WCWithImm)
				require.Equal(t, wr.Imm, wc.Imm)
			}
		}
		require.NoError(t, poll(t, a, 1)[0].Err())
	}
	for _, op := range []verbs.WROpcode{verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm} {
		require.NoError(t, a.Fill(0, n, seed))
		require.NoError(t, b.Fill(0, n, ^seed))
		send(verbs.SendWR{Opcode: op}, op != verbs.WRRDMAWrite)
		check(b, op.String())
	}
	require.NoError(t, b.Fill(0, n, seed))
	require.NoError(t, a.Fill(0, n, ^seed))
	send(verbs.SendWR{Opcode: verbs.WRRDMARead}, false)
	check(a, "READ")
}
