package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestWinMisuse checks that invalid calls return errors at once and leave the window usable.
func TestWinMisuse(t *testing.T) {
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		type pointer struct{ P *int }
		_, err := mpi.WinCreate(w.Comm, []pointer{{}})
		require.ErrorIs(t, err, mpi.ErrBuffer)
		require.ErrorContains(t, err, "has pointers")
		_, _, err = mpi.WinAllocate[int8](w.Comm, w.Rank()-1) // of rank 0 only
		require.ErrorIs(t, err, []error{mpi.ErrCount, mpi.ErrWin}[w.Rank()])

		win, mine, err := mpi.WinAllocate[int64](w.Comm, 10)
		require.NoError(t, err)
		floats, _, err := mpi.WinAllocate[float64](w.Comm, 10)
		require.NoError(t, err)
		structs, err := mpi.WinCreate(w.Comm, make([]particle, 3))
		require.NoError(t, err)
		one, two, none := mpi.Of([]int64{1}), mpi.Of([]int64{1, 2}), mpi.Buffer{}
		got := mpi.Value(new(int64))
		half := mpi.Of([]float64{0.5})

		// Calls without an epoch.
		other := 1 - w.Rank()
		for _, err := range []error{win.Put(one, other, mpi.At(0)), win.Complete(), win.Wait(), win.Unlock(other), win.UnlockAll(),
			win.Flush(other), win.FlushAll(), win.FlushLocal(other), win.FlushLocalAll()} {
			require.ErrorIs(t, err, mpi.ErrEpoch)
		}
		_, err = win.Test()
		require.ErrorIs(t, err, mpi.ErrEpoch)

		// Calls in an epoch.
		for _, x := range []*mpi.Win{win, floats, structs} {
			require.NoError(t, x.Fence())
		}
		sum := mpi.OpFunc("sum", true, func(in, inout []int64) {})
		for _, c := range []struct {
			err  error
			want error
		}{
			{win.Put(one, 2, mpi.At(0)), mpi.ErrRank},
			{win.Put(one, -1, mpi.At(0)), mpi.ErrRank},
			{win.Put(one, other, mpi.At(10)), mpi.ErrRange},
			{win.Put(two, other, mpi.At(9)), mpi.ErrRange},
			{win.Put(two, other, mpi.At(-1)), mpi.ErrRange},
			{win.Get(two, w.Rank(), mpi.At(8).Strided(2, 1, 2)), mpi.ErrRange},
			{win.Put(one, other, mpi.At(0).Strided(2, 1, 1)), mpi.ErrCount},
			{win.Put(half, other, mpi.At(0)), mpi.ErrType},
			{win.Put(mpi.Bytes(make([]byte, 8)), other, mpi.At(0)), mpi.ErrType},
			{structs.Put(mpi.Of([]float64{1, 2, 3}), other, mpi.At(0)), mpi.ErrType},
			{structs.Put(mpi.Structs([]struct{ A int32 }{{1}}), other, mpi.At(0)), mpi.ErrType},
			{structs.Accumulate(mpi.Structs(make([]particle, 1)), other, mpi.At(0), mpi.Replace), mpi.ErrType},
			{win.Put(mpi.Strided([]int64{1}, 3, 1, 1), other, mpi.At(0)), mpi.ErrBuffer},
			{win.Get(mpi.Strided([]int64{1, 2}, 3, 1, 0), other, mpi.At(0)), mpi.ErrBuffer},
			{win.Accumulate(one, other, mpi.At(0), sum), mpi.ErrOp},
			{win.Accumulate(one, other, mpi.At(0), mpi.MaxLoc), mpi.ErrOp},
			{floats.Accumulate(half, other, mpi.At(0), mpi.BAnd), mpi.ErrOp},
			{win.GetAccumulate(one, mpi.Of([]float64{1}), other, mpi.At(0), mpi.Sum), mpi.ErrType},
			{win.GetAccumulate(two, got, other, mpi.At(0), mpi.Sum), mpi.ErrType},
			{win.FetchAndOp(two, two, other, 0, mpi.Sum), mpi.ErrCount},
			{win.CompareAndSwap(two, two, two, other, 0), mpi.ErrCount},
			{win.CompareAndSwap(one, none, got, other, 0), mpi.ErrType},
			{floats.CompareAndSwap(half, half, mpi.Value(new(float64)), other, 0), mpi.ErrType},
			{win.Lock(3, other), mpi.ErrEpoch},
			{win.Lock(mpi.LockShared, 7), mpi.ErrRank},
		} {
			require.ErrorIs(t, c.err, c.want)
			var e *mpi.Error
			require.ErrorAs(t, c.err, &e)
		}
		require.NoError(t, win.Put(mpi.Of([]int64{}), other, mpi.At(10)))

		// Calls in an epoch of another kind.
		require.NoError(t, win.Put(one, other, mpi.At(4)))
		require.ErrorIs(t, win.Lock(mpi.LockShared, other), mpi.ErrEpoch)
		require.ErrorIs(t, win.LockAll(), mpi.ErrEpoch)
		require.ErrorIs(t, win.Start(win.Group()), mpi.ErrEpoch)
		require.ErrorIs(t, win.Post(win.Group()), mpi.ErrEpoch)
		require.ErrorIs(t, win.Fence(mpi.NoPrecede), mpi.ErrEpoch)
		require.NoError(t, win.Fence(mpi.NoSucceed))
		require.ErrorIs(t, win.Put(one, other, mpi.At(4)), mpi.ErrEpoch)

		require.NoError(t, win.Lock(mpi.LockShared, other))
		require.ErrorIs(t, win.Put(one, w.Rank(), mpi.At(4)), mpi.ErrEpoch)
		require.ErrorIs(t, win.Flush(w.Rank()), mpi.ErrEpoch)
		for _, err := range []error{win.Lock(mpi.LockShared, other), win.LockAll(), win.UnlockAll(), win.Fence(), win.Start(win.Group()), win.Free()} {
			require.ErrorIs(t, err, mpi.ErrEpoch)
		}
		require.NoError(t, win.Unlock(other))
		require.NoError(t, win.LockAll())
		for _, err := range []error{win.Lock(mpi.LockShared, other), win.LockAll(), win.Unlock(other), win.Fence(), win.Free()} {
			require.ErrorIs(t, err, mpi.ErrEpoch)
		}
		require.NoError(t, win.UnlockAll())
		require.NoError(t, win.Post(win.Group()))
		require.ErrorIs(t, win.Post(win.Group()), mpi.ErrEpoch)
		require.NoError(t, win.Start(win.Group()))
		for _, err := range []error{win.Start(win.Group()), win.Lock(mpi.LockShared, other), win.Fence(), win.Free()} {
			require.ErrorIs(t, err, mpi.ErrEpoch)
		}
		require.NoError(t, win.Complete())
		require.NoError(t, win.Wait())
		require.EqualValues(t, 1, mine[4])

		self, _, err := mpi.WinAllocate[int64](w.Self, 1)
		require.NoError(t, err)
		require.ErrorIs(t, self.Post(w.Group()), mpi.ErrGroup)
		for _, x := range []*mpi.Win{self, structs, floats, win} {
			require.NoError(t, x.Free())
			for _, err := range []error{x.Free(), x.Fence(), x.Put(one, 0, mpi.At(0)), x.Lock(mpi.LockShared, 0), x.LockAll(), x.Flush(0),
				x.Sync(), x.Post(w.Self.Group()), x.Start(w.Self.Group()), x.Wait()} {
				require.ErrorIs(t, err, mpi.ErrWin)
			}
		}
		return nil
	})
}

// TestWinLost checks that all ranks that wait for a lost rank, directly or indirectly, get an
// error that names it.
func TestWinLost(t *testing.T) {
	setups := map[string]losing{
		// Wait for a lookup of its regions, or for the recall of a region that it has looked up.
		"find":   knownToLost(func(win *mpi.Win, _, lost int) error { return win.Put(mpi.Of([]int64{1}), 2, mpi.At(lost)) }),
		"detach": knownToLost(func(win *mpi.Win, mine, _ int) error { return win.Detach(mine) }),
	}
	for name, wait := range map[string]func(w mpi.World, win *mpi.Win) error{
		"fence": func(w mpi.World, win *mpi.Win) error { return win.Fence() },
		"lock":  func(w mpi.World, win *mpi.Win) error { return win.Lock(mpi.LockShared, 0) }, // which rank 2 holds
		"put": func(w mpi.World, win *mpi.Win) error {
			if w.Rank() == 1 {
				return win.Lock(mpi.LockShared, 0)
			}
			err := win.Lock(mpi.LockShared, 2, mpi.NoCheck)
			if err == nil {
				if err = win.Put(mpi.Of([]int64{1}), 2, mpi.At(0)); err == nil {
					err = win.Unlock(2)
				}
			}
			return err
		},
		"accumulate": func(w mpi.World, win *mpi.Win) error {
			err := win.LockAll(mpi.NoCheck)
			if err != nil {
				return err
			}
			r, err := win.RgetAccumulate(mpi.Of([]int64{1, 2}), mpi.Of([]int64{1, 2}), 2, mpi.At(0), mpi.Max)
			if err == nil {
				_, err = r.Wait()
			}
			return err
		},
		"start": func(w mpi.World, win *mpi.Win) error { return win.Start(win.Group()) },
		"wait": func(w mpi.World, win *mpi.Win) error {
			if w.Rank() == 0 { // it can wait for rank 1 only
				g, err := win.Group().Incl(1)
				if err != nil {
					return err
				}
				if err := win.Post(g); err != nil {
					return err
				}
				return win.Wait()
			}
			return win.Start(win.Group())
		},
	} {
		setups[name] = lockedByLost(wait)
	}
	var jobs sync.WaitGroup
	for name, setup := range setups {
		for net, o := range map[string]mpi.Options{"direct": {}, "messages": {OneSided: mpi.Messages}, "tcp": {Net: mpi.TCP}} {
			if net == "messages" && name != "accumulate" && name != "detach" {
				continue // which is equivalent
			}
			jobs.Go(func() {
				if err := runLosing(o, setup); err != nil {
					t.Errorf("%s, %s: %v", name, net, err)
				}
			})
		}
	}
	jobs.Wait()
}

// losing creates a window of a job whose rank 2 is about to fail, and returns how to wait for it
// then.
type losing func(w mpi.World) (win *mpi.Win, wait func() error, err error)

// lockedByLost creates a window of which the rank that fails has locked rank 0.
func lockedByLost(wait func(mpi.World, *mpi.Win) error) losing {
	return func(w mpi.World) (*mpi.Win, func() error, error) {
		win, _, err := mpi.WinAllocate[int64](w.Comm, 4)
		if err == nil && w.Rank() == 2 {
			err = win.Lock(mpi.LockExclusive, 0)
		}
		return win, func() error { return wait(w, win) }, err
	}
}

// runLosing has two ranks wait for a third one that fails.
func runLosing(o mpi.Options, setup losing) error {
	return loseLast(3, o, func(w mpi.World) (func(<-chan struct{}) error, error) {
		win, wait, err := setup(w)
		if err == nil {
			err = w.Barrier()
		}
		return func(gone <-chan struct{}) error {
			<-gone
			if err := wait(); !errors.Is(err, mpi.ErrLost) || !strings.Contains(err.Error(), "rank 2") {
				return fmt.Errorf("the call returned %w", err)
			}
			// The window permits nothing but Free.
			for _, err := range []error{win.Lock(mpi.LockShared, 0), win.LockAll(), win.Post(win.Group()), win.Start(win.Group())} {
				if !errors.Is(err, mpi.ErrLost) {
					return fmt.Errorf("the later call returned %w", err)
				}
			}
			return win.Free()
		}, err
	})
}

// TestWinRequestError checks the error of a request whose target is lost. The error handler is
// called when the request is waited for, and may make calls.
func TestWinRequestError(t *testing.T) {
	gone, ended := make(chan struct{}), make(chan struct{})
	eachRank(2, mpi.Options{GiveUp: time.Minute}, func(rank int, o mpi.Options) {
		w, err := mpi.Init(open, o)
		require.NoError(t, err)
		var seen []*mpi.Error
		w.SetErrorHandler(func(e *mpi.Error) {
			_, _, _ = w.Self.Iprobe(mpi.AnySource, mpi.AnyTag) // needs the lock of the rank
			seen = append(seen, e)
		})
		win, _, err := mpi.WinAllocate[int64](w.Comm, 4)
		require.NoError(t, err)
		require.NoError(t, w.Barrier())
		if rank == 1 {
			w.Vanish()
			close(gone)
			<-ended
			return
		}
		defer close(ended)
		<-gone
		require.NoError(t, win.Lock(mpi.LockShared, 1, mpi.NoCheck))
		r, err := win.Rget(mpi.Of(make([]int64, 2)), 1, mpi.At(1))
		require.NoError(t, err)
		w.Lose()
		require.Empty(t, seen)
		_, err = r.Wait()
		require.ErrorIs(t, err, mpi.ErrLost)
		require.ErrorContains(t, err, "mpi: rank 0 of world.win: rget to 1 at 1: ")
		require.Len(t, seen, 1)
		require.Same(t, seen[0], err)
		r, err = win.Rget(mpi.Of(make([]int64, 2)), 1, mpi.At(1))
		require.ErrorIs(t, err, mpi.ErrLost)
		_, again := r.Wait()
		require.Same(t, err, again)
		w.Vanish()
	})
}
