package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestAcknowledgeFirst checks that a sender whose peer waits by events gets the completion of its send before
// the peer's answer, as from adapters in hardware.
func TestAcknowledgeFirst(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	ch, err := b.dev.CreateCompChannel()
	require.NoError(t, err)
	ch.(*completionChannel).notify = func(verbs.CQ) {}
	b.cq, err = ch.CreateCQ(16)
	require.NoError(t, err)
	b.qp = b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: b.cq})
	connect(t, a.dev, a.qp, b.dev, b.qp)
	for i := range uint64(100) {
		a.recv(t, i, 0, 64)
		b.recv(t, i, 0, 64)
		require.NoError(t, b.cq.ReqNotify(false))
		a.post(t, empty[0])
		require.Equal(t, verbs.WCRecv, b.poll1(t).Opcode)
		b.post(t, empty[0])
		require.Equal(t, verbs.WCSend, a.next(t).Opcode, "round %d", i)
		require.Equal(t, verbs.WCRecv, a.next(t).Opcode)
		require.Equal(t, verbs.WCSend, b.next(t).Opcode)
	}
}
