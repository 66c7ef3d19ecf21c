package mpitest_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func Example() {
	err := mpitest.Run(3, func(w mpi.World) error {
		sum := 0
		if err := w.Allreduce(mpi.Value(new(w.Rank())), mpi.Value(&sum), mpi.Sum); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println("the ranks' sum is", sum)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// the ranks' sum is 3
	// <nil>
}

func TestAllRanksRun(t *testing.T) {
	var ranks atomic.Int64
	require.NoError(t, mpitest.Run(4, func(w mpi.World) error {
		ranks.Add(1 << w.Rank())
		return w.Barrier()
	}))
	require.EqualValues(t, 0b1111, ranks.Load())
}

// TestFailure checks that Run returns although ranks do not end after another has failed.
func TestFailure(t *testing.T) {
	mpitest.SetGrace(t, 50*time.Millisecond)
	wrong := errors.New("two and two made five")
	over := make(chan struct{})
	defer close(over)
	var joined sync.WaitGroup // a rank that calls Init after the job has ended gets an error
	joined.Add(3)
	err := mpitest.Run(3, func(w mpi.World) error {
		joined.Done()
		joined.Wait() // if one cannot join, Run returns without these, and the test fails
		switch w.Rank() {
		case 1:
			return wrong
		case 2:
			<-over
		}
		return nil
	})
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "rank 1: two and two made five")
	require.ErrorContains(t, err, "rank 2: still running 50ms after another rank failed")
}

func TestRankThatLeaves(t *testing.T) {
	err := mpitest.Run(1, func(mpi.World) error {
		runtime.Goexit()
		return nil
	})
	require.ErrorContains(t, err, "rank 0: f called runtime.Goexit")
}
