package rnic

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestHandler checks that the handler gets an event found by the service, and that a waiter gets it
// only if the handler declines it.
func TestHandler(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	ch, cqs := b.newChannel(t, 1, 16)
	b.cq, b.qp = cqs[0], b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: cqs[0], RecvCQ: cqs[0]})
	connect(t, a.dev, a.qp, b.dev, b.qp)
	want, offered := make(chan bool, 1), make(chan verbs.CQ, 1)
	require.NoError(t, ch.Handle(func(c verbs.CQ) bool {
		offered <- c
		return <-want
	}))
	for i := range uint64(20) {
		b.recv(t, i, 0, 64)
		require.NoError(t, b.cq.ReqNotify(false))
		want <- i%2 == 0
		a.post(t, empty[0])
		require.Equal(t, b.cq, <-offered)
		if i%2 == 0 {
			c, err := eventOf(ch)
			require.NoError(t, err)
			require.Nil(t, c)
		} else {
			c, err := ch.Wait(soon(t))
			require.NoError(t, err)
			require.Equal(t, b.cq, c)
		}
		require.Equal(t, i, b.poll1(t).WRID)
		a.poll1(t)
	}

	err := ch.Handle(func(verbs.CQ) bool { return true })
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "completion channel 1: set handler of completion channel: invalid argument: the channel has a handler")
	require.ErrorIs(t, ch.Handle(nil), verbs.ErrInvalid)

	require.NoError(t, b.qp.Close())
	require.NoError(t, b.cq.Close())
	require.Len(t, *b.dev.handledChannels.Load(), 1)
	require.NoError(t, ch.Close())
	require.Empty(t, *b.dev.handledChannels.Load())
	require.ErrorIs(t, ch.Handle(func(verbs.CQ) bool { return true }), verbs.ErrClosed)
}

// TestHandOver checks that events during a poll of the service wait for its end, that declined and
// later ones wake waiters, and that an event of a closed queue is dropped.
func TestHandOver(t *testing.T) {
	e := newEnd(t, Options{NoService: true})
	some, cqs := e.newChannel(t, 3, 4)
	ch := some.(*completionChannel)
	var offered []verbs.CQ
	require.NoError(t, ch.Handle(func(c verbs.CQ) bool {
		offered = append(offered, c)
		switch c {
		case cqs[0]:
			return true
		case cqs[2]:
			require.NoError(t, c.Close())
		}
		return false
	}))
	list := func() {
		for _, c := range cqs {
			c := c.(*completionQueue)
			c.mu.Lock()
			ch.enqueueEvent(c, true)
			c.mu.Unlock()
		}
	}
	ch.servicePolls.Add(1)
	list()
	require.Empty(t, ch.more, "no waiter is notified")
	ch.servicePolls.Add(-1)
	ch.handleEvents()
	require.Equal(t, cqs, offered, "each once")
	require.Len(t, ch.more, 1)
	c, err := eventOf(ch)
	require.NoError(t, err)
	require.Equal(t, cqs[1], c)
	c, err = eventOf(ch)
	require.NoError(t, err)
	require.Nil(t, c)

	offered, cqs = nil, cqs[:2]
	list()
	require.Len(t, ch.more, 1, "the service did not look")
	require.Zero(t, e.dev.shards[0].pollForService())
	require.Empty(t, offered, "waiters get them")
}

// TestHandlerThatDoesNotReturn checks that a panic of a handler is not swallowed, and that one that
// ends its goroutine, as the FailNow of a test does, panics.
func TestHandlerThatDoesNotReturn(t *testing.T) {
	e := newEnd(t, Options{NoService: true})
	some, cqs := e.newChannel(t, 1, 4)
	boom := errors.New("boom")
	for _, c := range []struct {
		handler func(verbs.CQ) bool
		want    any
	}{
		{func(verbs.CQ) bool { panic(boom) }, boom},
		{func(verbs.CQ) bool { runtime.Goexit(); return true }, "rnic: handler of completion channel 1 called runtime.Goexit"},
	} {
		got := make(chan any)
		go func() {
			defer func() { got <- recover() }()
			some.(*completionChannel).callHandler(c.handler, cqs[0].(*completionQueue))
		}()
		require.Equal(t, c.want, <-got)
	}
}
