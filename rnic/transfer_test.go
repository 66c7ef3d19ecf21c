package rnic

import (
	"bytes"
	"testing"
	"time"

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

// TestZeroCopyPayloadsAreSent checks that corked packets that refer to the program's memory are sent
// before their requests complete.
func TestZeroCopyPayloadsAreSent(t *testing.T) {
	for name, give := range map[string]func(a *end, lent verbs.MR) error{
		"deregister": func(_ *end, lent verbs.MR) error { return lent.Close() },
		"error": func(a *end, _ verbs.MR) error {
			return a.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState)
		},
		"destroy": func(a *end, _ verbs.MR) error { return a.qp.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Options{NoService: true})
			const size = 10_000
			lent := a.reg(t, size, 0)
			for i := range size {
				lent.Bytes()[i] = byte(i * 7)
			}
			want := bytes.Clone(lent.Bytes())

			q := a.qp.(*queuePair)
			s := q.shard
			s.mu.Lock()
			_, err := q.core.PostSend(q.dev.now(), []verbs.SendWR{{
				Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{lent.SGE(0, size)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
			}})
			s.drainQP(q, q.dev.now())
			refers := s.tx.HasZeroCopy()
			s.mu.Unlock()
			require.NoError(t, err)
			require.True(t, refers)

			require.NoError(t, give(a, lent))
			clear(lent.Bytes())
			for late := time.Now().Add(patience); !bytes.Equal(want, b.mr.Bytes()[:size]); {
				require.True(t, time.Now().Before(late), "other bytes have come, or none")
				_, err := b.cq.Poll(make([]verbs.WC, 1))
				require.NoError(t, err)
			}
		})
	}
}
