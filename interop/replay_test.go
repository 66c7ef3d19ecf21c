//go:build interop && linux

package interop

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/verbs"
)

// TestReplay drops one response, so that the request is retransmitted: a READ resumes at
// the first missing byte, an atomic gets the same response but is not executed again, and
// a message is acknowledged but not received again.
func TestReplay(t *testing.T) {
	g := lab.Need(t)
	for _, k := range kinds {
		for _, c := range []struct {
			lost string
			op   verbs.WROpcode
		}{
			{"READ_RESPONSE_FIRST", verbs.WRRDMARead},
			{"READ_RESPONSE_MIDDLE", verbs.WRRDMARead},
			{"READ_RESPONSE_LAST", verbs.WRRDMARead},
			{"ATOMIC_ACKNOWLEDGE", verbs.WRAtomicFetchAdd},
			{"ACK", verbs.WRRDMAWriteWithImm},
			{"ACK", verbs.WRSend},
		} {
			n := 3000 // three packets
			if c.lost == "ACK" {
				n = 1000 // one, because the acknowledgement of a later one would do
			}
			row := []string{"retransmitted " + c.op.String(), c.lost + " is lost"}
			cell(t, behaviourT, k.String(), row, k.String()+", "+row[0]+", "+row[1], func(t *testing.T) {
				a, b := openPair(t, g, k, families[0], 1, peer.Options{}, peer.Options{}, verbs.ConnectOptions{MTU: verbs.MTU1024})
				soft := softOf(a, b)
				rule := "drop 1st " + c.lost
				if a == soft {
					rule = "drop in 1st " + c.lost
				}
				require.NoError(t, soft.Device.SetImpair(rule))
				before, err := g.Counters(context.Background())
				require.NoError(t, err)
				require.NoError(t, b.Fill(0, n, 1))
				require.NoError(t, b.Put(n, make([]byte, 8)))

				wr := verbs.SendWR{Opcode: c.op, Flags: verbs.SendSignaled, SGList: a.SGE(0, n), RemoteAddr: b.Addr(0), RKey: b.RKey(), CompareAdd: 5}
				switch c.op {
				case verbs.WRAtomicFetchAdd:
					wr.SGList, wr.RemoteAddr = a.SGE(0, 8), b.Addr(n)
				case verbs.WRSend, verbs.WRRDMAWriteWithImm:
					require.NoError(t, a.Fill(0, n, 1))
					require.NoError(t, b.Fill(0, n, 2))
					for range 2 { // a second receive, which a message received twice would consume
						require.NoError(t, b.PostRecv(0, 1, b.SGE(0, n)))
					}
				}
				require.NoError(t, a.PostSend(0, wr))
				require.NoError(t, poll(t, a, 1)[0].Err())

				require.EqualValues(t, 1, soft.Device.Inspect().Faults.Counters.Dropped)
				after, err := g.Counters(context.Background())
				require.NoError(t, err)
				duplicates := after["duplicate_request"] - before["duplicate_request"] + soft.Device.Inspect().Counters.DuplicateRequest
				require.NotZero(t, duplicates)
				switch c.op {
				case verbs.WRAtomicFetchAdd:
					value, err := b.Get(n, 8)
					require.NoError(t, err)
					require.EqualValues(t, 5, binary.NativeEndian.Uint64(value))
					old, err := a.Get(0, 8)
					require.NoError(t, err)
					require.Zero(t, binary.NativeEndian.Uint64(old))
				case verbs.WRRDMARead:
					sum, err := a.Sum(0, n)
					require.NoError(t, err)
					require.Equal(t, peer.PatternSum(n, 1), sum)
				default:
					require.NoError(t, poll(t, b, 1)[0].Err())
					sum, err := b.Sum(0, n)
					require.NoError(t, err)
					require.Equal(t, peer.PatternSum(n, 1), sum)
					require.NoError(t, b.Fail(0))
					require.Equal(t, verbs.WCWRFlushErr, poll(t, b, 1)[0].Status)
				}
			})
		}
	}
}
