package rnic

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestStreamTransfer sends, writes and reads messages of many lengths between two devices with iWARP.
func TestStreamTransfer(t *testing.T) {
	for _, noCRC := range []bool{false, true} {
		a, b := pair(t, Options{Wire: IWARP, NoCRC: noCRC})
		for _, n := range []int{0, 1, 7, 8, 63, 64, 65, 100, 4095, 4096, 16 << 10, 65400, 65472, 65473, 65536, 100_001, 1 << 20, 3<<20 + 5} {
			half := 4 << 20
			fill(a.mr.Bytes(), uint64(n))
			clear(b.mr.Bytes())
			b.recv(t, 7, half, n)
			a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, n)}})
			require.EqualValues(t, n, a.poll1(t).ByteLen)
			wc := b.poll1(t)
			require.Equal(t, verbs.WCRecv, wc.Opcode)
			require.EqualValues(t, n, wc.ByteLen)
			require.True(t, bytes.Equal(a.mr.Bytes()[:n], b.mr.Bytes()[half:half+n]), "send %d", n)

			a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(1, n)}, RemoteAddr: b.mr.Addr() + 3, RKey: b.mr.RKey()})
			a.poll1(t)
			a.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{a.mr.SGE(half, n)}, RemoteAddr: b.mr.Addr() + 3, RKey: b.mr.RKey()})
			require.EqualValues(t, n, a.poll1(t).ByteLen)
			require.True(t, bytes.Equal(a.mr.Bytes()[1:1+n], b.mr.Bytes()[3:3+n]), "write %d", n)
			require.True(t, bytes.Equal(a.mr.Bytes()[1:1+n], a.mr.Bytes()[half:half+n]), "read %d", n)
		}
	}
}
