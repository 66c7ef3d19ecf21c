package peer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func pair(t testing.TB, o peer.Options) (a, b *peer.Softrnic) {
	ends := [2]*peer.Softrnic{}
	for i := range ends {
		s, err := peer.OpenSoftrnic(rnic.Options{}, o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		ends[i] = s
	}
	return ends[0], ends[1]
}

func TestSoftrnicEnds(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for _, srq := range []bool{false, true} {
			if srq && typ == verbs.UC {
				continue
			}
			a, b := pair(t, peer.Options{Type: typ, QPs: 2, SRQ: srq})
			require.NoError(t, peer.Connect(a, b, 2, verbs.ConnectOptions{}))
			require.NoError(t, a.Fill(0, 1000, 5))
			room := 1000
			if typ == verbs.UD {
				room += 40
			}
			for qp := range 2 {
				require.NoError(t, b.PostRecv(qp, 1, b.SGE(0, room)))
				require.NoError(t, b.Arm(true))
				require.NoError(t, a.PostSend(qp, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend,
					Flags: verbs.SendSignaled | verbs.SendSolicited, SGList: a.SGE(0, 1000)}))
				came, err := b.Event(time.Minute)
				require.NoError(t, err)
				require.True(t, came)
				wcs, err := b.Poll(1, time.Minute)
				require.NoError(t, err)
				require.Len(t, wcs, 1)
				require.NoError(t, wcs[0].Err())
				sum, err := b.Sum(room-1000, 1000)
				require.NoError(t, err)
				require.Equal(t, peer.PatternSum(1000, 5), sum)
				wcs, err = a.Poll(1, time.Minute)
				require.NoError(t, err)
				require.NoError(t, wcs[0].Err())
			}
			wcs, err := a.Poll(1, 0)
			require.NoError(t, err)
			require.Empty(t, wcs)
		}
	}
}

func Example() {
	var ends [2]peer.Side
	for i := range ends {
		s, err := peer.OpenSoftrnic(rnic.Options{}, peer.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close()
		ends[i] = s
	}
	a, b := ends[0], ends[1]
	if err := peer.Connect(a, b, 1, verbs.ConnectOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	// The message does not fit into the receive.
	a.Fill(0, 5000, 1)
	b.PostRecv(0, 1, b.SGE(0, 4096))
	a.PostSend(0, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 5000)})
	for _, end := range ends {
		wcs, err := end.Poll(1, time.Minute)
		fmt.Println(wcs[0].Status, err)
	}
	// Output:
	// REM_INV_REQ_ERR <nil>
	// LOC_LEN_ERR <nil>
}
