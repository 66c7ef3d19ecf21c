package overlap

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

func TestOverlap(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		r    Result
		want float64
	}{
		{Result{Transfer: 100 * us, Compute: 100 * us, Both: 100 * us}, 1},
		{Result{Transfer: 100 * us, Compute: 100 * us, Both: 200 * us}, 0},
		{Result{Transfer: 100 * us, Compute: 200 * us, Both: 225 * us}, 0.75},
		{Result{Transfer: 200 * us, Compute: 100 * us, Both: 250 * us}, 0.5},
		{Result{Transfer: 100 * us, Compute: 100 * us, Both: 90 * us}, 1},
		{Result{Transfer: 100 * us, Compute: 100 * us, Both: 500 * us}, 0},
	} {
		require.InDelta(t, c.want, c.r.Overlap(), 1e-9, "%v", c.r)
	}
	require.InDelta(t, 25, Result{Transfer: 100 * us, Left: 25 * us}.LeftPercent(), 1e-9)
	require.InDelta(t, 75, Result{Transfer: 100 * us, Processor: 75 * us}.ProcessorPercent(), 1e-9)
	require.Zero(t, Result{Transfer: 100 * us, Processor: -us}.ProcessorPercent())
}

// TestMeasure measures transfers that need no processor and such that make no progress during the
// computation.
func TestMeasure(t *testing.T) {
	const length = 3 * time.Millisecond
	calls := 0
	hidden, err := Measure(func() (Wait, error) {
		calls++
		end := time.Now().Add(length)
		return func() error {
			for time.Now().Before(end) {
				compute(1)
			}
			return nil
		}, nil
	}, 5)
	require.NoError(t, err)
	require.Equal(t, Transfers(5), calls)
	require.GreaterOrEqual(t, hidden.Transfer, length)
	require.Positive(t, hidden.Compute)
	require.GreaterOrEqual(t, hidden.Both, hidden.Left)
	exposed, err := Measure(func() (Wait, error) {
		return func() error {
			for end := time.Now().Add(length); time.Now().Before(end); {
				compute(1)
			}
			return nil
		}, nil
	}, 5)
	require.NoError(t, err)
	require.GreaterOrEqual(t, exposed.Left, length)
	require.Less(t, exposed.Overlap(), 1.0)

	cause := errors.New("no network")
	_, err = Measure(func() (Wait, error) { return nil, cause }, 1)
	require.ErrorIs(t, err, cause)
	_, err = Measure(func() (Wait, error) { return func() error { return cause }, nil }, 1)
	require.ErrorIs(t, err, cause)
}

// TestStolen: a thread that computes beside the computation takes processor time of the process.
func TestStolen(t *testing.T) {
	if measure.ProcessorTime() == 0 {
		t.Skip("the processor time of the process is not known on this system")
	}
	require.Less(t, Stolen(20*time.Millisecond), 100.0)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for x := uint64(1); ; x ^= x << 13 {
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	require.Positive(t, Stolen(100*time.Millisecond))
	close(stop)
	<-ended
}
