package watch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIdle(t *testing.T) {
	ctx, w := watch.Start(context.Background(), 4*time.Millisecond)
	defer w.Stop()
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), watch.ErrIdle)
}

// TestBeats checks that a watch with beats continues for a multiple of its limit.
func TestBeats(t *testing.T) {
	const limit = time.Second
	ctx, w := watch.Start(context.Background(), limit)
	for range 100000 {
		w.Beat()
	}
	require.NoError(t, ctx.Err())
	w.Stop()
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}

func TestParent(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	ctx, w := watch.Start(parent, time.Hour)
	defer w.Stop()
	cancel()
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}
