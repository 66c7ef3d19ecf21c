//go:build interop && linux

package uverbs

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestStream keeps a send queue full of requests of which one in 32 is signaled, in both rings several
// times around.
func TestStream(t *testing.T) {
	for _, size := range []int{64, 64 << 10} {
		for _, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRSend} {
			a, b := newEnd(t, verbs.RC), newEnd(t, verbs.RC)
			for _, e := range []*end{a, b} {
				var err error
				e.cq, err = e.dev.CreateCQ(4096)
				require.NoError(t, err)
				e.qp, err = e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, SelectiveSignaling: true,
					Cap: verbs.QPCap{MaxSendWR: 128, MaxRecvWR: 512, MaxSendSGE: 1, MaxRecvSGE: 1}})
				require.NoError(t, err)
			}
			connect(t, a, b)
			const total, signal, depth = 640, 32, 128
			received, posted := 0, 0
			for range 512 {
				b.recv(t, 0, 0, size)
				posted++
			}
			sent, done := uint64(0), uint64(0)
			wc := make([]verbs.WC, 64)
			for ctx := soon(t); done < total; {
				require.NoError(t, ctx.Err(), "op %v size %d: sent %d done %d received %d, SQ %d used, CQ %d", op, size, sent, done, received, a.qp.(*queuePair).ring.countUsed(), a.cq.Len())
				if sent < total && sent+1-done <= depth {
					sent++
					wr := verbs.SendWR{WRID: sent, Opcode: op, SGList: []verbs.SGE{a.mr.SGE(0, size)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}
					if sent%signal == 0 {
						wr.Flags = verbs.SendSignaled
					}
					a.post(t, wr)
				}
				n, err := a.cq.Poll(wc)
				require.NoError(t, err)
				for i := range wc[:n] {
					require.NoError(t, wc[i].Err())
					done = wc[i].WRID
				}
				n, err = b.cq.Poll(wc)
				require.NoError(t, err)
				received += n
				for ; op == verbs.WRSend && posted < total && posted-received < 400; posted++ {
					b.recv(t, 0, 0, size)
				}
			}
		}
	}
}

// TestInlineOnly writes inline data from queue pairs without scatter/gather elements.
func TestInlineOnly(t *testing.T) {
	for _, c := range []struct {
		name string
		sges int
		flag verbs.SendFlags
	}{{"one element", 1, 0}, {"signaled", 0, verbs.SendSignaled}, {"unsignaled", 0, 0}} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newEnd(t, verbs.RC), newEnd(t, verbs.RC)
			var err error
			a.qp, err = a.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: a.cq, RecvCQ: a.cq, SelectiveSignaling: true,
				Cap: verbs.QPCap{MaxSendWR: 64, MaxSendSGE: c.sges, MaxInlineData: 8}})
			require.NoError(t, err)
			connect(t, a, b)
			wc := make([]verbs.WC, 1)
			for i := range uint64(100) {
				a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendInline | c.flag, InlineData: binary.NativeEndian.AppendUint64(nil, i+1),
					RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
				for ctx, done := soon(t), c.flag == 0; !done || b.mr.LoadUint64(0) != i+1; {
					require.NoError(t, ctx.Err(), "write %d: memory has %d", i, b.mr.LoadUint64(0))
					n, err := a.cq.Poll(wc)
					require.NoError(t, err)
					if n > 0 {
						require.NoError(t, wc[0].Err())
						done = true
					}
				}
			}
		})
	}
}
