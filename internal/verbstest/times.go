package verbstest

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// testRecordTimes checks that completions have times in their order only while the queue records
// them, failures too.
func testRecordTimes(t *T) {
	e, peer := newEnd(t), newEnd(t)
	connect(t, e.dev, e.qp, peer.dev, peer.qp)
	poll := func() verbs.WC {
		wr := verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: peer.mr.Addr(), RKey: peer.mr.RKey(),
			SGList: []verbs.SGE{e.mr.SGE(0, 8)}}
		_, err := e.qp.PostSend([]verbs.SendWR{wr})
		require.NoError(t, err)
		var wc [1]verbs.WC
		n, err := e.cq.PollWait(soon(t), wc[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		return wc[0]
	}
	require.Zero(t, poll().Time, "not asked for")
	e.cq.RecordTimes(true)
	before := e.dev.QueryClock()
	for range 3 {
		wc := poll()
		require.NoError(t, wc.Err())
		after := e.dev.QueryClock()
		require.True(t, before <= wc.Time && wc.Time <= after, "%d <= %d <= %d", before, wc.Time, after)
		before = after
	}
	require.NoError(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState))
	wc := poll()
	require.Equal(t, verbs.WCWRFlushErr, wc.Status)
	require.GreaterOrEqual(t, wc.Time, before)
	e.cq.RecordTimes(false)
	require.Zero(t, poll().Time)
}
