package data_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/data"
)

// ctx expires long after every test should be finished.
var ctx context.Context

// TestMain makes rapid draw few programs, unless the command line sets the number.
func TestMain(m *testing.M) {
	if err := errors.Join(flag.Set("rapid.checks", "2"), flag.Set("rapid.steps", "20")); err != nil {
		panic(err)
	}
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Minute)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		cancel()
		os.Exit(code)
	}))
}

// nets are the transports.
var nets = map[string]acp.Net{"rc": acp.RC, "ud": acp.UD}

// newOptions returns options of the ranks.
func newOptions(net acp.Net) acptest.Options {
	return acptest.Options{ACP: acp.Options{Net: net}}
}

// world runs f with the spaces of all ranks of a job, for one goroutine that acts as each of them.
func world(t *testing.T, n int, o acptest.Options, heap int, f func(w []*data.Space)) {
	t.Helper()
	w := make([]*data.Space, n)
	over := make(chan struct{})
	var there sync.WaitGroup
	there.Add(n)
	ended := make(chan error, 1)
	go func() {
		ended <- acptest.RunOptions(n, o, func(p *acp.Process) (err error) {
			w[p.Rank()], err = data.Open(ctx, p, data.Options{Heap: heap})
			there.Done()
			if err != nil {
				return err
			}
			<-over
			return w[p.Rank()].Close(ctx)
		})
	}()
	defer func() { require.NoError(t, <-ended) }()
	defer close(over)
	there.Wait()
	for rank, s := range w {
		require.NotNil(t, s, "rank %d", rank)
	}
	f(w)
}

// worlds runs f in jobs of 1, 2 and 4 ranks, over both transports.
func worlds(t *testing.T, heap int, f func(t *testing.T, w []*data.Space)) {
	for name, net := range nets {
		for _, n := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				world(t, n, newOptions(net), heap, func(w []*data.Space) { f(t, w) })
			})
		}
	}
}

// openEach opens a structure at every rank.
func openEach[O any](t require.TestingT, w []*data.Space, open func(*data.Space) (O, error)) []O {
	as := make([]O, len(w))
	for i := range w {
		var err error
		as[i], err = open(w[i])
		require.NoError(t, err)
	}
	return as
}

// requireSame compares an iteration with that of the model.
func requireSame[T any](t require.TestingT, model []T, all iter.Seq2[T, error]) {
	have := 0
	for x, err := range all {
		require.NoError(t, err)
		require.Equal(t, model[have], x)
		have++
	}
	require.Equal(t, len(model), have)
}

// empty checks that no heap has allocated blocks.
func empty(t require.TestingT, w []*data.Space) {
	for rank := range w {
		h, err := w[0].Stats(ctx, rank)
		require.NoError(t, err)
		require.Zero(t, h.Blocks)
		require.Zero(t, h.Bytes)
	}
}
