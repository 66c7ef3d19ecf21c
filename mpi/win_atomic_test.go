package mpi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestWinAtomicity has all ranks add to one word with every kind of operation, and checks that no
// addition is lost: by atomics of the device, in packets, and locally.
func TestWinAtomicity(t *testing.T) {
	winJob(t, 4, func(t *testing.T, w mpi.World) error { return countTogether(t, w, 40) })
}

func countTogether(t *testing.T, w mpi.World, rounds int64) error {
	n := int64(w.Size())
	win, mine, err := mpi.WinAllocate[int64](w.Comm, 3)
	require.NoError(t, err)
	floats, sums, err := mpi.WinAllocate[float32](w.Comm, 2)
	require.NoError(t, err)
	require.NoError(t, win.LockAll())
	require.NoError(t, floats.LockAll())
	one, last := []int64{1}, int64(-1)
	for i := range rounds {
		switch (i + int64(w.Rank())) % 4 {
		case 0:
			require.NoError(t, win.Accumulate(mpi.Of(one), 0, mpi.At(1), mpi.Sum))
		case 1: // more than an atomic of the device
			require.NoError(t, win.Accumulate(mpi.Of([]int64{0, 1, 0}), 0, mpi.At(0), mpi.Sum))
		case 2:
			was := int64(-1)
			require.NoError(t, win.FetchAndOp(mpi.Of(one), mpi.Value(&was), 0, 1, mpi.Sum))
			require.NoError(t, win.Flush(0))
			require.Greater(t, was, last)
			last = was
		default:
			var was, is int64
			require.NoError(t, win.FetchAndOp(mpi.Buffer{}, mpi.Value(&is), 0, 1, mpi.NoOp))
			require.NoError(t, win.Flush(0))
			for was = is - 1; was != is; {
				if was >= 0 {
					is = was
				}
				require.NoError(t, win.CompareAndSwap(mpi.Of([]int64{is + 1}), mpi.Value(&is), mpi.Value(&was), 0, 1))
				require.NoError(t, win.Flush(0))
			}
		}
		require.NoError(t, floats.Accumulate(mpi.Of([]float32{1, 2}), 0, mpi.At(0), mpi.Sum))
		require.NoError(t, win.Accumulate(mpi.Of([]int64{i*n + int64(w.Rank())}), 0, mpi.At(2), mpi.Max))
	}
	require.NoError(t, win.UnlockAll())
	require.NoError(t, floats.UnlockAll())
	require.NoError(t, w.Barrier())
	if w.Rank() == 0 {
		require.NoError(t, win.Lock(mpi.LockExclusive, 0))
		require.Equal(t, []int64{0, n * rounds, n*rounds - 1}, mine)
		require.NoError(t, win.Unlock(0))
		require.NoError(t, floats.Lock(mpi.LockExclusive, 0))
		require.Equal(t, []float32{float32(n * rounds), float32(2 * n * rounds)}, sums)
		require.NoError(t, floats.Unlock(0))
	}
	require.NoError(t, floats.Free())
	return win.Free()
}

// TestWinMaxLoc checks that the greatest value is selected, and of equal values that of the lowest
// rank.
func TestWinMaxLoc(t *testing.T) {
	winJob(t, 3, func(t *testing.T, w mpi.World) error {
		pairs := []mpi.Pair[int16]{{Value: -1}, {Value: -1}}
		win, err := mpi.WinCreate(w.Comm, pairs)
		require.NoError(t, err)
		require.NoError(t, win.Fence())
		mine := []mpi.Pair[int16]{{Value: 5, Index: int64(w.Rank())}, {Value: int16(w.Rank()), Index: 9}}
		err = win.Accumulate(mpi.Pairs(mine), 0, mpi.At(0), mpi.MaxLoc)
		require.NoError(t, err)
		require.NoError(t, win.Fence(mpi.NoSucceed))
		if w.Rank() == 0 {
			require.Equal(t, []mpi.Pair[int16]{{Value: 5, Index: 0}, {Value: 2, Index: 9}}, pairs)
		}
		return win.Free()
	}, "direct", "messages")
}

// TestWinLoss drops 1 % of all packets.
func TestWinLoss(t *testing.T) {
	const n, seed = 3, 5
	t.Logf("seed %d", seed)
	for name, o := range map[string]mpi.Options{"direct": {}, "messages": {OneSided: mpi.Messages}} {
		t.Run(name, func(t *testing.T) {
			open, faults := impaired(fmt.Sprintf("loss 1%% seed %d", seed))
			jobOn(t, open, n, o, func(w mpi.World) error { return countTogether(t, w, 100) })
			require.Positive(t, faults().Lost)
		})
	}
}
