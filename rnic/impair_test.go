package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func TestImpairedLinkLosesNothing(t *testing.T) {
	for _, text := range []string{"loss 5% seed 3", "duplicate 20% seed 4", "corrupt 5% seed 5", "delay 1ms 0.5ms reorder 20% seed 6",
		"drop every 3rd ACK", "drop first WRITE_LAST; corrupt icrc of 2nd WRITE"} {
		t.Run(text, func(t *testing.T) {
			a, b := pair(t, Options{Impair: text})
			for i := range a.mr.Bytes() {
				a.mr.Bytes()[i] = byte(i * 31 >> 3)
			}
			for range 20 {
				_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
					SGList: []verbs.SGE{a.mr.SGE(0, 300_000)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
				require.NoError(t, err)
				a.poll1(t)
			}
			require.NoError(t, a.qp.Close())
			require.Equal(t, a.mr.Bytes()[:300_000], b.mr.Bytes()[:300_000])
		})
	}
}
