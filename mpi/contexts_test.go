package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestContextIDReuse checks that the context ids of freed communicators are reused, also by
// communicators of other ranks.
func TestContextIDReuse(t *testing.T) {
	const limit = 5
	job(t, 4, mpi.Options{}, func(w mpi.World) error {
		w.LimitContexts(limit)
		rng := rand.New(rand.NewPCG(7, 7)) // the same at all ranks
		var open []*mpi.Comm
		for round := range 40 {
			color := rng.IntN(3)
			if w.Rank()%2 == rng.IntN(2) {
				color = mpi.Undefined
			}
			c, err := w.Split(color, 0)
			require.NoError(t, err)
			if c == nil {
				continue
			}
			// A context id that some ranks use is not given to a communicator with one of them.
			x := []int64{int64(round)}
			require.NoError(t, c.Allreduce(mpi.InPlace, mpi.Of(x), mpi.Sum))
			if x[0] != int64(round*c.Size()) {
				return fmt.Errorf("round %d: %d, of %d ranks", round, x[0], c.Size())
			}
			if open = append(open, c); len(open) == limit-2 {
				for _, c := range open {
					require.NoError(t, c.Free())
				}
				open = nil
			}
		}
		for _, c := range open {
			require.NoError(t, c.Free())
		}
		return nil
	})
}

// TestTooManyCommunicators checks that all ranks get an error if one rank has no free context id.
func TestTooManyCommunicators(t *testing.T) {
	job(t, 3, checked, func(w mpi.World) error {
		w.LimitContexts(4)
		first, err := w.Dup()
		require.NoError(t, err)
		if w.Rank() == 1 {
			for range 3 {
				require.NoError(t, made(w.Self.Dup()))
			}
			require.ErrorIs(t, made(w.Self.Dup()), mpi.ErrContexts)
		}
		full := func() {
			c, err := w.Dup()
			require.ErrorIs(t, err, mpi.ErrContexts)
			require.Nil(t, c)
		}
		full()
		// A persistent call keeps the context id of its communicator in use.
		r, err := first.Ibarrier()
		require.NoError(t, err)
		kept, err := first.BarrierInit()
		require.NoError(t, err)
		require.NoError(t, first.Free())
		_, err = r.Wait()
		require.NoError(t, err)
		full()
		require.NoError(t, kept.Free())
		second, err := w.Dup()
		require.NoError(t, err)
		return second.Barrier()
	})
}

// TestGoroutines creates and frees communicators concurrently in several goroutines of each rank.
func TestGoroutines(t *testing.T) {
	const ranks, goroutines = 3, 4
	job(t, ranks, checked, func(w mpi.World) error {
		w.LimitContexts(3 * goroutines)
		comms := make([]*mpi.Comm, goroutines)
		for i := range comms {
			var err error
			comms[i], err = w.Dup()
			require.NoError(t, err)
		}
		errs := make([]error, goroutines)
		var all sync.WaitGroup
		for i, c := range comms {
			all.Go(func() { errs[i] = busy(c, i) })
		}
		all.Wait()
		return errors.Join(errs...)
	})
}

// busy makes several kinds of calls.
func busy(c *mpi.Comm, seed int) error {
	c.SetName(fmt.Sprint("goroutine ", seed))
	for round := range 6 {
		t := trial{n: 3 + 400*(round%2), strided: round%3 == 0, root: round % c.Size()}
		d, err := c.Split(0, c.Rank()*(seed%2*2-1))
		if err != nil {
			return err
		}
		for _, name := range []string{"allreduce", "bcast", "alltoallv", "gatherv", "scan"} {
			if err := collectives[name](d, d.Rank(), d.Size(), t); err != nil {
				return fmt.Errorf("%v: %v: %w", c, t, err)
			}
		}
		x, y := []int64{int64(c.Rank())}, []int64{0}
		if _, err := c.Sendrecv(mpi.Of(x), (c.Rank()+1)%c.Size(), seed, mpi.Of(y), mpi.AnySource, mpi.AnyTag); err != nil {
			return err
		}
		if int(y[0]) != (c.Rank()+c.Size()-1)%c.Size() {
			return fmt.Errorf("%v: a message of rank %d", c, y[0])
		}
		if err := collectives["reduce-scatter"](formed{d, round%2 == 0}, d.Rank(), d.Size(), t); err != nil {
			return err
		}
		if err := d.Free(); err != nil {
			return err
		}
	}
	return nil
}
