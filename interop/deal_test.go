//go:build interop && linux

package interop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// openPair opens and connects two ends.
func openPair(t testing.TB, g *lab.Guest, k kind, f family, qps int, oa, ob peer.Options, o verbs.ConnectOptions) (a, b peer.Side) {
	t.Helper()
	oa.QPs, ob.QPs = qps, qps
	a = open(t, g, k.a, f, rnic.Options{}, oa)
	b = open(t, g, k.b, f, rnic.Options{}, ob)
	require.NoError(t, peer.Connect(a, b, qps, o))
	return a, b
}

// TestSolicited checks that a queue armed for solicited completions has an event only for
// messages with the solicited flag and for failures.
func TestSolicited(t *testing.T) {
	g := lab.Need(t)
	for _, k := range append(kinds, linuxAlone) {
		cell(t, behaviourT, k.String(), []string{"solicited events", ""}, k.String(), func(t *testing.T) {
			a, b := openPair(t, g, k, families[0], 1, peer.Options{}, peer.Options{}, verbs.ConnectOptions{})
			for range 5 {
				require.NoError(t, b.PostRecv(0, 1, b.SGE(0, 64)))
			}
			require.NoError(t, b.Arm(true))
			event := func(want bool) {
				t.Helper()
				within := patience
				if !want {
					within = 0 // the completion exists, so an event would exist
				}
				got, err := b.Event(within)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			for _, step := range []struct {
				op        verbs.WROpcode
				solicited bool
			}{{verbs.WRSend, false}, {verbs.WRRDMAWriteWithImm, false}, {verbs.WRSend, true}, {verbs.WRRDMAWriteWithImm, true}} {
				wr := verbs.SendWR{Opcode: step.op, Flags: verbs.SendSignaled, SGList: a.SGE(0, 64), RemoteAddr: b.Addr(0), RKey: b.RKey()}
				if step.solicited {
					wr.Flags |= verbs.SendSolicited
				}
				require.NoError(t, a.PostSend(0, wr))
				require.NoError(t, poll(t, b, 1)[0].Err())
				event(step.solicited)
				if step.solicited {
					require.NoError(t, b.Arm(true))
				}
				require.NoError(t, poll(t, a, 1)[0].Err())
			}
			require.NoError(t, b.Fail(0))
			event(true)
		})
	}
}

// TestSharedReceives checks that two queue pairs consume the receives of one shared
// queue in order, that the limit event is raised once, and that senders recover from the
// RNR NAKs of an empty queue.
func TestSharedReceives(t *testing.T) {
	g := lab.Need(t)
	for _, k := range append(kinds, linuxAlone) {
		cell(t, behaviourT, k.String(), []string{"shared receive queue: order, limit event, RNR", ""}, k.String(), func(t *testing.T) {
			a, b := openPair(t, g, k, families[0], 2, peer.Options{}, peer.Options{SRQ: true}, verbs.ConnectOptions{})
			const n = 8
			for i := range n {
				require.NoError(t, b.PostRecv(0, uint64(i), b.SGE(1000*i, 1000)))
			}
			require.NoError(t, b.Limit(n-2))
			for i := range n {
				require.NoError(t, a.Fill(0, 1000, uint32(i)))
				require.NoError(t, a.PostSend(i%2, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 1000)}))
				require.NoError(t, poll(t, a, 1)[0].Err())
				wc := poll(t, b, 1)[0]
				require.NoError(t, wc.Err())
				require.EqualValues(t, i, wc.WRID)
				require.Equal(t, b.Endpoint(i%2).QPN, wc.QPN)
				sum, err := b.Sum(1000*i, 1000)
				require.NoError(t, err)
				require.Equal(t, peer.PatternSum(1000, uint32(i)), sum)
			}
			event, ok, err := b.AsyncEvent(patience)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, verbs.EventSRQLimitReached, event)
			_, ok, err = b.AsyncEvent(0)
			require.NoError(t, err)
			require.False(t, ok)

			for qp := range 2 {
				require.NoError(t, a.PostSend(qp, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 1000)}))
			}
			for range 2 {
				require.NoError(t, b.PostRecv(0, 9, b.SGE(0, 1000)))
				require.NoError(t, poll(t, b, 1)[0].Err())
			}
			for _, wc := range poll(t, a, 2) {
				require.NoError(t, wc.Err())
			}
		})
	}
}
