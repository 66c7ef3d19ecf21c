package rnichook_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestNotifyChannel raises an event by a UD send whose completion arms the queue of a channel: it
// comes to the function, once for each ReqNotify, and Wait has none.
func TestNotifyChannel(t *testing.T) {
	conn, err := memory.NewLive().Attach(netip.MustParseAddrPort("192.0.2.1:4791"), memory.Options{})
	require.NoError(t, err)
	dev, err := rnic.Open(rnichook.WithHooks(rnic.Options{NoService: true}, rnichook.Hooks{Conn: conn}))
	require.NoError(t, err)
	defer dev.Close()
	ch, err := dev.CreateCompChannel()
	require.NoError(t, err)
	var events []any
	rnichook.NotifyChannel(ch, func(cq any) { events = append(events, cq) })
	cq, err := ch.CreateCQ(8)
	require.NoError(t, err)
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}})
	require.NoError(t, err)
	require.NoError(t, verbs.ActivateUD(qp, 1, 1))
	gid, err := dev.QueryGID(1, 0)
	require.NoError(t, err)
	ah, err := pd.CreateAH(verbs.AHAttr{DGID: gid.GID})
	require.NoError(t, err)
	send := func() {
		_, err := qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, AH: ah, RemoteQPN: qp.Num(), RemoteQKey: 1}})
		require.NoError(t, err)
		dev.Progress()
	}
	send()
	require.Empty(t, events, "the queue is not armed")
	require.NoError(t, cq.ReqNotify(false))
	send()
	send()
	require.Equal(t, []any{cq}, events, "one event for one ReqNotify")
	require.Equal(t, 3, cq.Len())
}

// TestRaiseEvent satisfies one Wait for each event, whether it comes before or while Wait blocks.
func TestRaiseEvent(t *testing.T) {
	conn, err := memory.NewLive().Attach(netip.MustParseAddrPort("192.0.2.1:4791"), memory.Options{})
	require.NoError(t, err)
	dev, err := rnic.Open(rnichook.WithHooks(rnic.Options{}, rnichook.Hooks{Conn: conn}))
	require.NoError(t, err)
	defer dev.Close()
	cq, err := dev.CreateCQ(1)
	require.NoError(t, err)

	rnichook.RaiseEvent(cq)
	require.NoError(t, cq.Wait(t.Context()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, cq.Wait(ended), context.Canceled, "one event satisfies one Wait")

	waited := make(chan error)
	go func() { waited <- cq.Wait(context.Background()) }()
	rnichook.RaiseEvent(cq)
	require.NoError(t, <-waited)
}
