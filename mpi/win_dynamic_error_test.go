package mpi_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestWinDynamicMisuse checks invalid attaches, detaches and accesses, which have no effect.
func TestWinDynamicMisuse(t *testing.T) {
	winJob(t, 2, func(t *testing.T, w mpi.World) error {
		win, err := mpi.WinCreateDynamic(w.Comm)
		require.NoError(t, err)
		static, _, err := mpi.WinAllocate[int64](w.Comm, 1)
		require.NoError(t, err)

		mem := make([]int64, 100)
		low, high := mem[10:20], mem[20:40] // adjacent regions
		lowAt, err := mpi.WinAttach(win, low)
		require.NoError(t, err)
		highAt, err := mpi.WinAttach(win, high)
		require.NoError(t, err)
		for _, s := range [][]int64{low, mem, mem[5:11], mem[19:21], mem[39:], mem[12:13]} {
			_, err := mpi.WinAttach(win, s)
			require.ErrorIs(t, err, mpi.ErrAttach)
			require.ErrorContains(t, err, "overlap")
		}
		type pointer struct{ P *int }
		_, err = mpi.WinAttach(win, []pointer{{}})
		require.ErrorIs(t, err, mpi.ErrBuffer)
		_, err = mpi.WinAttach(static, mem)
		require.ErrorIs(t, err, mpi.ErrAttach)
		require.ErrorIs(t, static.Detach(lowAt), mpi.ErrAttach)
		none, err := mpi.WinAttach(win, mem[50:50])
		require.NoError(t, err)
		require.Zero(t, none)
		require.NoError(t, win.Detach(none))
		err = win.Detach(lowAt + 8)
		require.ErrorIs(t, err, mpi.ErrAttach)
		require.ErrorContains(t, err, fmt.Sprintf("attached nearby: 80 bytes from %#x on, 160 bytes from %#x on", lowAt, highAt))
		require.ErrorIs(t, win.Put(mpi.Of([]int64{1}), 1, mpi.At(lowAt)), mpi.ErrEpoch)

		ends := addresses(t, w, highAt+8*20)
		other := 1 - w.Rank()
		require.NoError(t, win.Fence())
		for _, to := range []int{other, w.Rank()} {
			end := ends[to]
			begin, wall := end-8*30, end-8*20
			one, two := mpi.Of([]int64{1}), mpi.Of([]int64{1, 2})
			for _, c := range []struct {
				err  error
				want error
			}{
				{win.Put(one, to, mpi.At(end)), mpi.ErrRange},
				{win.Put(one, to, mpi.At(end-4)), mpi.ErrRange},
				{win.Get(one, to, mpi.At(begin-1)), mpi.ErrRange},
				{win.Get(two, to, mpi.At(wall-8)), mpi.ErrRange}, // across both
				{win.Put(two, to, mpi.At(begin).Strided(2, 1, 10)), mpi.ErrRange},
				{win.Put(two, to, mpi.At(begin).Indexed([]mpi.Block{{At: 9, Len: 2}})), mpi.ErrRange},
				{win.Put(one, to, mpi.At(begin).Indexed([]mpi.Block{{At: math.MaxInt / 2, Len: 1}})), mpi.ErrRange},
				{win.Put(two, to, mpi.At(begin).Strided(3, 1, 1)), mpi.ErrCount},
				{win.Put(one, to, mpi.At(0)), mpi.ErrRange},
				{win.Put(one, to, mpi.At(-8)), mpi.ErrRange},
				{win.Put(one, to, mpi.At(-4)), mpi.ErrRange},
				{win.Accumulate(two, to, mpi.At(end-8), mpi.Sum), mpi.ErrRange},
				{win.FetchAndOp(one, mpi.Value(new(int64)), to, end, mpi.Sum), mpi.ErrRange},
				{win.CompareAndSwap(one, one, mpi.Value(new(int64)), to, begin-8), mpi.ErrRange},
				{win.Put(one, 2, mpi.At(begin)), mpi.ErrRank},
			} {
				require.ErrorIs(t, c.err, c.want)
			}
			_, err := win.Rput(one, to, mpi.At(end))
			require.ErrorIs(t, err, mpi.ErrRange)
			err = win.Put(two, to, mpi.At(wall-8))
			require.ErrorContains(t, err, fmt.Sprintf("rank %d has not attached 16 bytes from %#x on; attached nearby: 80 bytes from %#x on, 160 bytes from %#x on",
				to, wall-8, begin, wall))
			require.NoError(t, win.Put(one, to, mpi.At(end-8*2).Indexed([]mpi.Block{{At: 1, Len: 1}})), "what is before does not count")
			require.NoError(t, win.Put(one, to, mpi.At(end-8*50).Indexed([]mpi.Block{{At: 48, Len: 1}})), "nor where it counts from")
		}
		require.NoError(t, win.Fence(mpi.NoSucceed))
		want := make([]int64, 100)
		want[38], want[39] = 1, 1
		require.Equal(t, want, mem)

		require.NoError(t, win.Detach(lowAt))
		require.ErrorIs(t, win.Detach(lowAt), mpi.ErrAttach)
		require.NoError(t, win.Detach(highAt))
		err = win.Detach(highAt)
		require.ErrorContains(t, err, "nothing is attached")
		at, err := mpi.WinAttach(win, mem) // the addresses where they were
		require.NoError(t, err)
		all := addresses(t, w, at)
		require.NoError(t, win.Fence())
		require.NoError(t, win.Put(mpi.Of(mem), other, mpi.At(all[other])))
		require.NoError(t, win.Free())
		for _, err := range []error{win.Detach(at), win.Put(mpi.Of(mem), other, mpi.At(all[other]))} {
			require.ErrorIs(t, err, mpi.ErrWin)
		}
		_, err = mpi.WinAttach(win, mem)
		require.ErrorIs(t, err, mpi.ErrWin)
		return static.Free()
	}, "direct", "messages", "ud", "tcp")
}

// TestWinDynamicMismatch checks that static and dynamic windows at different ranks are a
// mismatch.
func TestWinDynamicMismatch(t *testing.T) {
	job(t, 3, mpi.Options{}, func(w mpi.World) error {
		var err error
		if w.Rank() == 1 {
			_, err = mpi.WinCreateDynamic(w.Comm)
		} else {
			_, _, err = mpi.WinAllocate[int8](w.Comm, 1)
		}
		require.ErrorIs(t, err, mpi.ErrMismatch)
		return nil
	})
}

// TestWinDynamicPackets checks that dynamic windows work with the shortest packets, on every net.
func TestWinDynamicPackets(t *testing.T) {
	const eager = 64
	for _, net := range []mpi.Net{mpi.RDMA, mpi.UD, mpi.TCP} {
		o := mpi.Options{Net: net, OneSided: mpi.Messages, RDMA: mpi.RDMAOptions{Eager: eager}, UD: mpi.UDOptions{Eager: eager}, TCP: mpi.TCPOptions{Eager: eager}}
		job(t, 2, o, func(w mpi.World) error {
			win, err := mpi.WinCreateDynamic(w.Comm)
			require.NoError(t, err)
			mine := make([]int64, 4)
			at, err := mpi.WinAttach(win, mine)
			require.NoError(t, err)
			all := addresses(t, w, at)
			other := 1 - w.Rank()
			require.NoError(t, win.Fence())
			require.NoError(t, win.Put(mpi.Of([]int64{1, 2}), other, mpi.At(all[other]+8)))
			require.ErrorIs(t, win.Put(mpi.Of([]int64{1, 2}), other, mpi.At(all[other]+8*3)), mpi.ErrRange)
			require.NoError(t, win.Fence(mpi.NoSucceed))
			require.Equal(t, []int64{0, 1, 2, 0}, mine)
			return win.Free()
		})
	}
}

// knownToLost creates a window in which the lost rank has looked up regions of the others, and no
// rank has looked up its region.
func knownToLost(wait func(win *mpi.Win, mine, lost int) error) losing {
	return func(w mpi.World) (*mpi.Win, func() error, error) {
		win, err := mpi.WinCreateDynamic(w.Comm)
		if err != nil {
			return nil, nil, err
		}
		mine := make([]int64, 2)
		at, err := mpi.WinAttach(win, mine)
		all := make([]int, w.Size())
		if err == nil {
			err = w.Allgather(mpi.Of([]int{at}), mpi.Of(all))
		}
		if err == nil {
			err = win.LockAll(mpi.NoCheck)
		}
		if err == nil && w.Rank() == 2 {
			for r := range 2 {
				err = errors.Join(err, win.Put(mpi.Of([]int64{1}), r, mpi.At(all[r])), win.Flush(r))
			}
		}
		return win, func() error {
			err := wait(win, at, all[2])
			_, attach := mpi.WinAttach(win, make([]int64, 3))
			for _, later := range []error{attach, win.Detach(at)} {
				if err != nil && !errors.Is(later, mpi.ErrLost) {
					return fmt.Errorf("the later call returned %w", later)
				}
			}
			return err
		}, err
	}
}
