package verbstest

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// srqPair is a pair whose second end has two queue pairs with a shared receive queue, connected to
// two of the first end.
func srqPair(t *T, init verbs.SRQInitAttr) (a, b *end, from, to [2]verbs.QP, srq verbs.SRQ) {
	t.Helper()
	a, b = newEnd(t), newEnd(t)
	srq, err := b.pd.CreateSRQ(init)
	require.NoError(t, err)
	for i := range to {
		from[i], to[i] = a.newQP(t, verbs.RC), b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SRQ: srq})
		connect(t, a.dev, from[i], b.dev, to[i])
	}
	return a, b, from, to, srq
}

func testSRQTraffic(t *T) {
	a, b, from, to, srq := srqPair(t, verbs.SRQInitAttr{MaxWR: 200, MaxSGE: 1})
	byQP := map[uint32]int{}
	for i := range uint64(100) {
		_, err := srq.PostRecv([]verbs.RecvWR{{WRID: i, SGList: []verbs.SGE{b.mr.SGE(int(i)*5000, 5000)}}})
		require.NoError(t, err)
	}
	for i := range 100 {
		fill(a.mr.Bytes()[:5000], uint64(i))
		a.qp = from[i%2]
		a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 5000)}})
		a.poll1(t)
		wc := b.poll1(t)
		require.EqualValues(t, i, wc.WRID, "in the order of the shared queue")
		require.Equal(t, a.mr.Bytes()[:5000], b.mr.Bytes()[i*5000:(i+1)*5000])
		byQP[wc.QPN]++
	}
	require.Equal(t, map[uint32]int{to[0].Num(): 50, to[1].Num(): 50}, byQP)

	_, err := to[0].PostRecv(recv0)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	t.explains(err, "the queue pair has a shared receive queue; post there")
	require.ErrorIs(t, srq.Close(), verbs.ErrBusy)
}

// testSRQEmpty checks that a message waits while the shared queue is empty.
func testSRQEmpty(t *T) {
	a, b, from, _, srq := srqPair(t, verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
	a.qp = from[1]
	a.post(t, empty[0])
	for t.device.Counter(b.dev, "send_rnr_err") == 0 {
		b.dev.Progress()
	}
	_, err := srq.PostRecv([]verbs.RecvWR{{WRID: 77}})
	require.NoError(t, err)
	a.poll1(t)
	require.EqualValues(t, 77, b.poll1(t).WRID)
}

func testResizeSRQ(t *T) {
	_, _, _, _, srq := srqPair(t, verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
	fill := func() (n int, err error) {
		for err == nil {
			var k int
			k, err = srq.PostRecv(recv0)
			n += k
		}
		return n, err
	}
	n, err := fill()
	require.Equal(t, 4, n)
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.NoError(t, srq.Modify(verbs.SRQAttr{MaxWR: 8}, verbs.SRQMaxWR))
	attr, err := srq.Query()
	require.NoError(t, err)
	require.Equal(t, 8, attr.MaxWR)
	n, _ = fill()
	require.Equal(t, 4, n)
}

func testModifySRQLimit(t *T) {
	a, b, from, _, srq := srqPair(t, verbs.SRQInitAttr{MaxWR: 20, MaxSGE: 1})
	for range 10 {
		_, err := srq.PostRecv(recv0)
		require.NoError(t, err)
	}
	require.NoError(t, srq.Modify(verbs.SRQAttr{Limit: 7}, verbs.SRQLimit))
	attr, err := srq.Query()
	require.NoError(t, err)
	require.Equal(t, 7, attr.Limit)
	for i := range 4 {
		a.qp = from[i%2]
		a.post(t, empty[0])
		a.poll1(t)
		b.poll1(t)
	}
	require.Same(t, srq, b.event(t, verbs.EventSRQLimitReached).SRQ)
	attr, err = srq.Query()
	require.NoError(t, err)
	require.Zero(t, attr.Limit, "it fires once")
}
