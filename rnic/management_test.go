package rnic

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestManagementDoesNotLead checks that a waiter for management datagrams leaves the socket to the
// waiters for traffic, and still gets its datagrams.
func TestManagementDoesNotLead(t *testing.T) {
	a, b := newEndOf(t, Options{}, verbs.GSI), newEndOf(t, Options{}, verbs.GSI)
	for _, e := range []*end{a, b} {
		for _, s := range []verbs.QPAttr{{State: verbs.StateInit, PortNum: 1}, {State: verbs.StateRTR}, {State: verbs.StateRTS}} {
			mask := verbs.AttrState
			switch s.State {
			case verbs.StateInit:
				mask |= verbs.AttrPKeyIndex | verbs.AttrPort | verbs.AttrQKey
			case verbs.StateRTS:
				mask |= verbs.AttrSQPSN
			}
			require.NoError(t, e.qp.Modify(s, mask))
		}
	}
	b.recv(t, 1, 0, 100)
	cq := b.cq.(*completionQueue)
	got := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		var wc [1]verbs.WC
		_, err := b.cq.PollWait(ctx, wc[:])
		got <- err
	}()
	for cq.parkedCount.Load() == 0 {
		runtime.Gosched()
	}
	require.Nil(t, b.dev.shards[0].leader.Load(), "it has parked and does not lead")
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 10)}, AH: a.handle(t, b.dev), RemoteQPN: 1})
	require.NoError(t, <-got)

	other := b.newQP(t, verbs.RC) // a queue for traffic as well
	require.False(t, cq.managementOnly.Load())
	require.NoError(t, other.Close())
}
