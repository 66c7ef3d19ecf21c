package verbstest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// testCompletionsOfAnEarlierLife: a reset or destroyed queue pair leaves no
// completion behind, in neither queue, and those of others keep their order.
func testCompletionsOfAnEarlierLife(t *T) {
	for name, end := range map[string]func(q verbs.QP) error{
		"reset":             func(q verbs.QP) error { return q.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState) },
		"destroy":           verbs.QP.Close,
		"error, then reset": resetFromError,
	} {
		for _, shared := range []bool{false, true} {
			t.Run(name, func(t *T) { testPurge(t, end, shared) })
		}
	}
}

func resetFromError(q verbs.QP) error {
	for _, s := range []verbs.QPState{verbs.StateErr, verbs.StateReset} {
		if err := q.Modify(verbs.QPAttr{State: s}, verbs.AttrState); err != nil {
			return err
		}
	}
	return nil
}

func testPurge(t *T, end func(verbs.QP) error, shared bool) {
	a, b := newEnd(t), newEnd(t)
	var queue verbs.SRQ
	attr := verbs.QPInitAttr{Type: verbs.RC, RecvCQ: b.cq, SendCQ: b.cq}
	if shared {
		var err error
		queue, err = b.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 100, MaxSGE: 1})
		require.NoError(t, err)
		attr.SRQ = queue
	} else {
		attr.RecvCQ = b.newCQ(t, 64)
	}
	var qa, qb [2]verbs.QP // 0 ends, 1 stays
	for i := range qa {
		qa[i], qb[i] = a.newQP(t, verbs.RC), b.newQPWith(t, attr)
		connect(t, a.dev, qa[i], b.dev, qb[i])
	}
	const rounds = 20 // more than the ring of the queue begins with
	for id := range uint64(rounds) {
		for i := range qa {
			post := qb[i].PostRecv
			if shared {
				post = queue.PostRecv
			}
			_, err := post([]verbs.RecvWR{{WRID: 100 + id, SGList: []verbs.SGE{b.mr.SGE(0, 8)}}})
			require.NoError(t, err)
			for _, q := range []verbs.QP{qa[i], qb[i]} {
				wr := verbs.SendWR{WRID: id, Flags: verbs.SendSignaled, Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 8)}}
				cq, other := a.cq, b
				if q == qb[i] {
					wr.Opcode, wr.SGList = verbs.WRRDMAWrite, []verbs.SGE{b.mr.SGE(0, 8)}
					wr.RemoteAddr, wr.RKey = a.mr.Addr(), a.mr.RKey()
					cq, other = b.cq, a
				}
				before := cq.Len()
				_, err := q.PostSend([]verbs.SendWR{wr})
				require.NoError(t, err)
				waitUntil(t, func() bool { other.dev.Progress(); return cq.Len() > before })
			}
		}
	}
	recvs := attr.RecvCQ
	waitUntil(t, func() bool { return recvs.Len() >= rounds*2 })

	require.NoError(t, end(qb[0]))
	counts := map[verbs.WCOpcode]uint64{}
	for _, cq := range []verbs.CQ{b.cq, recvs} {
		for wc := make([]verbs.WC, 1); cq.Len() > 0; {
			n, err := cq.Poll(wc)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, qb[1].Num(), wc[0].QPN)
			id := counts[wc[0].Opcode]
			if wc[0].Opcode.IsRecv() {
				if !shared { // else the other one takes some of them
					require.Equal(t, 100+id, wc[0].WRID)
				}
			} else {
				require.Equal(t, id, wc[0].WRID)
			}
			counts[wc[0].Opcode]++
		}
	}
	require.Equal(t, map[verbs.WCOpcode]uint64{verbs.WCRecv: rounds, verbs.WCRDMAWrite: rounds}, counts)
	if shared {
		got, err := queue.Query()
		require.NoError(t, err)
		require.Equal(t, 100, got.MaxWR)
	}

	// The queue works after that, also for a waiter.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	_, err := b.cq.PollWait(ctx, make([]verbs.WC, 1))
	cancel()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = qb[1].PostSend([]verbs.SendWR{{WRID: 99, Flags: verbs.SendSignaled, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{b.mr.SGE(0, 8)},
		RemoteAddr: a.mr.Addr(), RKey: a.mr.RKey()}})
	require.NoError(t, err)
	require.EqualValues(t, 99, nextOf(t, b.cq).WRID)
}

func waitUntil(t *T, done func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !done(); {
		require.True(t, time.Now().Before(late))
	}
}

// testEventOfPurgedCompletion: a waiter whose completion is dropped waits on, and
// gets the next one.
func testEventOfPurgedCompletion(t *T) {
	a, b := pair(t)
	require.NoError(t, a.cq.ReqNotify(false))
	wr := []verbs.SendWR{{WRID: 1, Flags: verbs.SendSignaled, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}}
	_, err := a.qp.PostSend(wr)
	require.NoError(t, err)
	require.NoError(t, a.cq.Wait(soon(t)))
	for _, e := range []*end{b, a} {
		require.NoError(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState))
	}
	require.Zero(t, a.cq.Len())
	require.NoError(t, a.cq.ReqNotify(false))
	reconnect(t, a, b)
	wr[0].WRID = 2
	_, err = a.qp.PostSend(wr)
	require.NoError(t, err)
	require.NoError(t, a.cq.Wait(soon(t)))
	require.EqualValues(t, 2, a.poll1(t).WRID)
}
