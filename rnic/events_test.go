package rnic

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func TestEventsComeInOrder(t *testing.T) {
	q := newEventQueue()
	types := []verbs.EventType{verbs.EventCommEst, verbs.EventQPFatal, verbs.EventCommEst, verbs.EventSQDrained,
		verbs.EventCQErr, verbs.EventQPAccessErr, verbs.EventSRQLimitReached}
	for i, typ := range types {
		q.push(verbs.AsyncEvent{Type: typ, Port: i})
	}
	for i, typ := range types {
		ev, err := q.waitNext(context.Background())
		require.NoError(t, err)
		require.Equal(t, verbs.AsyncEvent{Type: typ, Port: i}, ev)
	}
	require.Zero(t, q.lostEvents())
}

// TestEventsWakeOneAfterAnother checks that two events with one wake-up wake two waiters: the first
// waiter wakes the second.
func TestEventsWakeOneAfterAnother(t *testing.T) {
	q := newEventQueue()
	q.push(verbs.AsyncEvent{Port: 1})
	q.push(verbs.AsyncEvent{Port: 2})
	<-q.more
	_, ok := q.tryPop()
	require.True(t, ok)
	require.Len(t, q.more, 1)
	<-q.more
	_, ok = q.tryPop()
	require.True(t, ok)
	require.Empty(t, q.more)
}

func TestGetEventWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newEventQueue()
		got := make(chan int, 3)
		for range 3 {
			go func() {
				ev, err := q.waitNext(t.Context())
				assert.NoError(t, err)
				got <- ev.Port
			}()
		}
		synctest.Wait()
		require.Empty(t, got, "nothing to get yet")
		q.push(verbs.AsyncEvent{Port: 1})
		synctest.Wait()
		require.Len(t, got, 1)
		q.push(verbs.AsyncEvent{Port: 2})
		q.push(verbs.AsyncEvent{Port: 3})
		require.ElementsMatch(t, []int{1, 2, 3}, []int{<-got, <-got, <-got})
	})
}

func TestGetEventEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newEventQueue()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := q.waitNext(ctx)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)

		q.push(verbs.AsyncEvent{Port: 1})
		ev, err := q.waitNext(ctx)
		require.NoError(t, err, "what is there is returned even to an ended context")
		require.Equal(t, 1, ev.Port)
		_, err = q.waitNext(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestCloseEndsGetEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newEventQueue()
		ended := make(chan error)
		for range 2 {
			go func() {
				_, err := q.waitNext(t.Context())
				ended <- err
			}()
		}
		synctest.Wait()
		q.close()
		q.close()
		require.ErrorIs(t, <-ended, verbs.ErrClosed)
		require.ErrorIs(t, <-ended, verbs.ErrClosed)
		q.push(verbs.AsyncEvent{})
		_, err := q.waitNext(t.Context())
		require.ErrorIs(t, err, verbs.ErrClosed)
	})
}

func TestCloseDropsEvents(t *testing.T) {
	q := newEventQueue()
	q.push(verbs.AsyncEvent{Type: verbs.EventQPFatal})
	q.push(verbs.AsyncEvent{Type: verbs.EventCommEst})
	q.close()
	_, err := q.waitNext(context.Background())
	require.ErrorIs(t, err, verbs.ErrClosed)
}

// TestEventsLostCounted checks that lost events are counted by the device.
func TestEventsLostCounted(t *testing.T) {
	d := newEnd(t, Options{}).dev
	for range maxQueuedEvents + 3 {
		d.events.push(verbs.AsyncEvent{Type: verbs.EventCommEst})
	}
	require.EqualValues(t, 3, d.Inspect().Counters.EventsLost)
}

// TestEventOverflow checks that an overflow drops the oldest notices, and no error.
func TestEventOverflow(t *testing.T) {
	q := newEventQueue()
	const flood = 10 * maxQueuedEvents
	for i := range flood {
		if i%100 == 0 {
			q.push(verbs.AsyncEvent{Type: verbs.EventQPFatal, Port: i})
		} else {
			q.push(verbs.AsyncEvent{Type: verbs.EventCommEst, Port: i})
		}
	}
	var errors, notices, last int
	for ev, ok := q.tryPop(); ok; ev, ok = q.tryPop() {
		require.GreaterOrEqual(t, ev.Port, last, "order")
		last = ev.Port
		if ev.Type == verbs.EventQPFatal {
			require.Equal(t, 100*errors, ev.Port)
			errors++
		} else {
			notices++
		}
	}
	require.Equal(t, (flood+99)/100, errors)
	require.Equal(t, maxQueuedEvents, notices)
	require.Equal(t, flood-1, last, "the newest are kept")
	require.EqualValues(t, flood-errors-notices, q.lostEvents())

	for i := range flood {
		q.push(verbs.AsyncEvent{Type: verbs.EventCQErr, Port: i})
	}
	ev, ok := q.tryPop()
	require.True(t, ok)
	require.Equal(t, flood-maxQueuedEvents, ev.Port, "of errors, too, the newest are kept")
}

// TestManyGettersManyPutters checks that each event wakes one waiter, and that no waiter sleeps
// beside an event.
func TestManyGettersManyPutters(t *testing.T) {
	q := newEventQueue()
	const putters, getters, each = 4, 4, 100
	var wg sync.WaitGroup
	got := make(chan int, putters*each)
	for p := range putters {
		wg.Go(func() {
			for i := range each {
				q.push(verbs.AsyncEvent{Port: p*each + i})
			}
		})
	}
	for range getters {
		wg.Go(func() {
			for range putters * each / getters {
				ev, err := q.waitNext(context.Background())
				assert.NoError(t, err)
				got <- ev.Port
			}
		})
	}
	wg.Wait()
	seen := make(map[int]bool)
	for range putters * each {
		seen[<-got] = true
	}
	require.Len(t, seen, putters*each)
}

// TestErrorsAndNotices checks that every event of a device is an error or a notice, according to
// its description.
func TestErrorsAndNotices(t *testing.T) {
	for typ := verbs.EventCQErr; typ <= verbs.EventWQFatal; typ++ {
		switch typ {
		case verbs.EventCommEst, verbs.EventSQDrained, verbs.EventPortActive, verbs.EventSRQLimitReached,
			verbs.EventQPLastWQEReached, verbs.EventGIDChange:
			require.False(t, isError(typ), typ)
		case verbs.EventPathMig, verbs.EventPathMigErr, verbs.EventLIDChange, verbs.EventPKeyChange, verbs.EventSMChange,
			verbs.EventSRQErr, verbs.EventClientReregister, verbs.EventWQFatal: // never raised
		default:
			require.True(t, isError(typ), typ)
		}
	}
}
