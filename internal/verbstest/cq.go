package verbstest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func testCreateCQ(t *T) {
	e := newEnd(t)
	most := e.dev.QueryDevice().MaxCQE
	for _, depth := range []int{1, most / 2, most} {
		c := e.newCQ(t, depth)
		require.Equal(t, depth, c.Depth())
		require.NoError(t, c.Close())
	}
}

func testCreateCQBadFlow(t *T) {
	dev := newEnd(t).dev
	for _, depth := range []int{-1, 0, dev.QueryDevice().MaxCQE + 1} {
		_, err := dev.CreateCQ(depth)
		require.ErrorIs(t, err, verbs.ErrLimit)
		t.explains(err, "want 1 to 4194304")
	}
}

func testResizeCQ(t *T) {
	e := newEndOf(t, verbs.UD)
	require.NoError(t, verbs.ActivateUD(e.qp, qkey, 0))
	c := e.cq
	require.NoError(t, c.Resize(1))
	require.Equal(t, 1, c.Depth())
	require.NoError(t, c.Resize(7))
	require.Equal(t, 7, c.Depth())
	ah := e.handle(t, e.dev)
	var wrs []verbs.SendWR // in one list, so that all are sent at once
	for i := range uint64(6) {
		wrs = append(wrs, verbs.SendWR{WRID: i, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: 0xabcdef, RemoteQKey: qkey})
	}
	_, err := e.qp.PostSend(wrs)
	require.NoError(t, err)
	err = c.Resize(1)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	t.explains(err, "6 completions are waiting; poll them first")
	require.Equal(t, 7, c.Depth())
	require.NoError(t, c.Resize(6))
	for i := range uint64(6) {
		require.Equal(t, i, e.poll1(t).WRID)
	}
	for _, depth := range []int{0, -3, 1 << 30} {
		require.ErrorIs(t, c.Resize(depth), verbs.ErrLimit)
	}
}

// cqEvents exchanges messages by events alone: arm, poll, wait.
func cqEvents(t *T, typ verbs.QPType) {
	a, b := pairOf(t, typ)
	ctx := soon(t)
	wr := empty[0]
	if typ == verbs.UD {
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = a.handle(t, b.dev), b.qp.Num(), qkey
	}
	for range 100 {
		b.recv(t, 1, 0, 64)
		for _, e := range []*end{a, b} {
			require.NoError(t, e.cq.ReqNotify(false))
		}
		a.post(t, wr)
		for _, e := range []*end{b, a} {
			require.NoError(t, e.cq.Wait(ctx))
			var wc [2]verbs.WC
			n, err := e.cq.Poll(wc[:])
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.NoError(t, wc[0].Err())
		}
	}
}

func testCQEventsUD(t *T) { cqEvents(t, verbs.UD) }
func testCQEventsRC(t *T) { cqEvents(t, verbs.RC) }
func testCQEventsUC(t *T) { cqEvents(t, verbs.UC) }

// hasFired reports whether the armed event of a queue has been raised.
func hasFired(c verbs.CQ) bool {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return c.Wait(ended) == nil
}

// fires checks that the armed event of a queue is raised, and if the adapter raises events before the
// calls that cause them return, that it is raised already.
func (t *T) fires(c verbs.CQ, because ...any) {
	t.Helper()
	if t.device.Synchronous {
		require.True(t, hasFired(c), because...)
	} else {
		require.NoError(t, c.Wait(soon(t)), because...)
	}
}

// testCQEventsSolicited arms for solicited completions: only solicited messages and failures raise
// the event.
func testCQEventsSolicited(t *T) {
	a, b := pair(t)
	for i := range uint64(3) {
		b.recv(t, i, 0, 64)
	}
	require.NoError(t, b.cq.ReqNotify(true))
	a.post(t, empty[0])
	a.poll1(t)
	for b.cq.Len() < 1 {
		b.dev.Progress()
	}
	require.False(t, hasFired(b.cq), "not solicited")
	require.EqualValues(t, 0, b.poll1(t).WRID)

	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSolicited})
	require.NoError(t, b.cq.Wait(soon(t)))
	require.EqualValues(t, 1, b.poll1(t).WRID)
	a.poll1(t)

	require.NoError(t, b.cq.ReqNotify(true))
	require.NoError(t, b.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState))
	t.fires(b.cq, "a failure is solicited")
}

// testPollWaitBesideSolicited waits by PollWait on a queue that is armed for solicited completions:
// other completions end PollWait, and not Wait.
func testPollWaitBesideSolicited(t *T) {
	a, b := pair(t)
	for i := range uint64(3) {
		b.recv(t, i, 0, 64)
	}
	require.NoError(t, b.cq.ReqNotify(true))
	polled := make(chan uint64)
	go func() {
		var wc [1]verbs.WC
		for range 2 {
			if n, err := b.cq.PollWait(soon(t), wc[:]); n != 1 || err != nil {
				wc[0].WRID = 99
			}
			polled <- wc[0].WRID
		}
	}()
	for i := range uint64(2) {
		a.post(t, empty[0])
		a.poll1(t)
		require.Equal(t, i, <-polled)
	}
	require.False(t, hasFired(b.cq), "not solicited")
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSolicited})
	require.NoError(t, b.cq.Wait(soon(t)))
	require.EqualValues(t, 2, b.poll1(t).WRID)
}

// testCQEventsOneShot checks that an event is raised once for each arming, that earlier completions
// do not count, and that arming for all completions overrides arming for solicited ones.
func testCQEventsOneShot(t *T) {
	e := newEndOf(t, verbs.UD)
	require.NoError(t, verbs.ActivateUD(e.qp, qkey, 0))
	ah := e.handle(t, e.dev)
	complete := func() {
		before := e.cq.Len()
		e.post(t, verbs.SendWR{Opcode: verbs.WRSend, AH: ah, RemoteQPN: 0xabcdef, RemoteQKey: qkey})
		for e.cq.Len() == before {
			e.dev.Progress()
		}
	}
	complete()
	require.False(t, hasFired(e.cq), "not armed")
	require.NoError(t, e.cq.ReqNotify(false))
	require.False(t, hasFired(e.cq), "that one was before")
	complete()
	t.fires(e.cq)
	complete()
	require.False(t, hasFired(e.cq), "not armed any more")

	require.NoError(t, e.cq.ReqNotify(false))
	require.NoError(t, e.cq.ReqNotify(true))
	complete()
	t.fires(e.cq, "a send is not solicited, but it was armed for all")
}
