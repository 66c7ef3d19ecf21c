package progress

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// fakeCQ returns the given numbers of completions, one number a call, then err.
type fakeCQ struct {
	verbs.CQ
	counts []int
	next   uint64 // WRID of the next completion
	err    error
}

func (q *fakeCQ) Poll(wcs []verbs.WC) (int, error) {
	if len(q.counts) == 0 {
		return 0, q.err
	}
	n := q.counts[0]
	q.counts = q.counts[1:]
	for i := range n {
		wcs[i] = verbs.WC{WRID: q.next}
		q.next++
	}
	return n, nil
}

func (q *fakeCQ) PollWait(ctx context.Context, wcs []verbs.WC) (int, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return q.Poll(wcs)
}

// TestCompletionsInOrder checks that Poll handles the completions of Block before those of
// the queue, each once, and polls until a call does not fill the buffer.
func TestCompletionsInOrder(t *testing.T) {
	for _, test := range []struct {
		counts  []int
		handled int // by the first Poll
	}{
		{[]int{3, 7}, 3},      // Block has emptied the queue
		{[]int{64, 7, 5}, 71}, // Block has filled the buffer
		{[]int{64, 64, 0, 5}, 128},
		{[]int{0, 5}, 5},
	} {
		cq := &fakeCQ{counts: test.counts}
		c := Completions{CQ: cq}
		require.NoError(t, c.Block(t.Context()))
		require.Equal(t, test.counts[0] > 0, c.Pending())
		var seen uint64
		some, err := c.Poll(func(wcs []verbs.WC) {
			for _, wc := range wcs {
				require.Equal(t, seen, wc.WRID)
				seen++
			}
		})
		require.NoError(t, err)
		require.True(t, some)
		require.EqualValues(t, test.handled, seen)
		require.False(t, c.Pending())
	}
}

// TestCompletionsErrors checks that a failure of the queue reaches Poll once, also after Block
// has returned it, and that the end of the context does not.
func TestCompletionsErrors(t *testing.T) {
	failed := errors.New("failed")
	c := Completions{CQ: &fakeCQ{err: failed}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Block(ended), context.Canceled)
	require.False(t, c.Pending())

	require.ErrorIs(t, c.Block(t.Context()), failed)
	require.True(t, c.Pending())
	c.CQ = &fakeCQ{counts: []int{2}}
	none := func([]verbs.WC) { t.Fatal("no completion has arrived") }
	some, err := c.Poll(none)
	require.ErrorIs(t, err, failed)
	require.False(t, some)

	require.True(t, c.Receive(), "the queue works again")
	require.True(t, c.Receive(), "Receive keeps pending completions")
	some, err = c.Poll(func(wcs []verbs.WC) { require.Len(t, wcs, 2) })
	require.NoError(t, err)
	require.True(t, some)
}

// TestBlockUntil ends with memory, completions, the context or an error of the CQ, on a device that
// cannot tell when memory changes and on one that can.
func TestBlockUntil(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failure := errors.New("failed")
	for _, waits := range []bool{false, true} {
		open := func(q *fakeCQ) *Completions {
			if waits {
				return &Completions{CQ: &fakeMemoryCQ{fakeCQ: q}}
			}
			return &Completions{CQ: q}
		}
		polls := 0
		c := open(&fakeCQ{counts: make([]int, 6000)})
		require.NoError(t, c.BlockUntil(t.Context(), func() bool { polls++; return polls > 5500 }), "after spinning, yields and sleeps")
		require.False(t, c.Pending())

		never := func() bool { return false }
		c = open(&fakeCQ{counts: []int{0, 0, 3}})
		require.NoError(t, c.BlockUntil(t.Context(), never))
		require.True(t, c.Pending())

		require.ErrorIs(t, open(&fakeCQ{counts: make([]int, 9)}).BlockUntil(ended, never), context.Canceled)

		c = open(&fakeCQ{err: failure})
		require.NoError(t, c.BlockUntil(t.Context(), never), "Poll has the error")
		_, err := c.Poll(func([]verbs.WC) {})
		require.ErrorIs(t, err, failure)
	}
}

// A fakeMemoryCQ also waits for memory.
type fakeMemoryCQ struct{ *fakeCQ }

func (q *fakeMemoryCQ) WaitUntil(ctx context.Context, ready func() bool) error {
	for !ready() && len(q.counts) > 0 && q.counts[0] == 0 && ctx.Err() == nil {
		q.counts = q.counts[1:]
	}
	return ctx.Err()
}
