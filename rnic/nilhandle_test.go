package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestNilHandles passes nil objects and nil pointers in interfaces: all are refused, or the request
// fails.
func TestNilHandles(t *testing.T) {
	a := newEndOf(t, Options{}, verbs.UD)
	var cq *completionQueue
	var srq *sharedReceiveQueue
	for _, c := range []struct {
		says string
		attr verbs.QPInitAttr
	}{
		{"SendCQ must be", verbs.QPInitAttr{RecvCQ: a.cq}},
		{"RecvCQ must be", verbs.QPInitAttr{SendCQ: a.cq}},
		{"SendCQ must be", verbs.QPInitAttr{SendCQ: cq, RecvCQ: a.cq}},
		{"RecvCQ must be", verbs.QPInitAttr{SendCQ: a.cq, RecvCQ: cq}},
		{"SRQ must be", verbs.QPInitAttr{SendCQ: a.cq, RecvCQ: a.cq, SRQ: srq}},
	} {
		c.attr.Type = verbs.RC
		q, err := a.pd.CreateQP(c.attr)
		require.Nil(t, q)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}

	require.NoError(t, verbs.ActivateUD(a.qp, qkey, 1))
	var none *addressHandle
	for _, ah := range []verbs.AH{nil, none} {
		n, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, AH: ah, RemoteQPN: 1}})
		require.Zero(t, n)
		require.ErrorIs(t, err, verbs.ErrInvalid)
	}

	var mw *memoryWindow
	var mr *memoryRegion
	for _, bind := range []verbs.BindMW{{}, {MW: mw, MR: a.mr}, {MW: mw, MR: mr}} {
		q, _ := pair(t, Options{})
		q.post(t, verbs.SendWR{Opcode: verbs.WRBindMW, Bind: bind})
		require.Equal(t, verbs.WCMWBindErr, q.next(t).Status)
	}
}
