package mpi_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestWinPostStart puts data to the neighbors and waits for these only.
func TestWinPostStart(t *testing.T) {
	winJob(t, 5, func(t *testing.T, w mpi.World) error {
		n := w.Size()
		win, mine, err := mpi.WinAllocate[int64](w.Comm, n)
		require.NoError(t, err)
		left, right := (w.Rank()+n-1)%n, (w.Rank()+1)%n
		from, err := win.Group().Incl(left)
		require.NoError(t, err)
		to, err := win.Group().Incl(right)
		require.NoError(t, err)
		for i := range int64(20) {
			require.NoError(t, win.Post(from))
			require.NoError(t, win.Start(to))
			require.ErrorIs(t, win.Put(mpi.Of([]int64{1}), left, mpi.At(0)), mpi.ErrEpoch)
			require.NoError(t, win.Put(mpi.Of([]int64{i}), right, mpi.At(w.Rank())))
			require.NoError(t, win.Accumulate(mpi.Of([]int64{i + 1}), right, mpi.At(right), mpi.Sum))
			got := int64(-1)
			require.NoError(t, win.FetchAndOp(mpi.Of([]int64{i}), mpi.Value(&got), right, right, mpi.Max))
			require.NoError(t, win.Complete())
			require.Positive(t, got)
			for over := i%2 == 0; !over; {
				over, err = win.Test()
				require.NoError(t, err)
			}
			if i%2 == 0 {
				require.NoError(t, win.Wait())
			}
			require.Equal(t, i, mine[left])
			require.Equal(t, (i+1)*(i+2)/2, mine[w.Rank()])
		}
		// With NoCheck the program itself guarantees that Post precedes Start.
		require.NoError(t, win.Post(from, mpi.NoCheck))
		require.NoError(t, w.Barrier())
		require.NoError(t, win.Start(to, mpi.NoCheck))
		require.NoError(t, win.Put(mpi.Of([]int64{77}), right, mpi.At(w.Rank())))
		require.NoError(t, win.Complete())
		require.NoError(t, win.Wait())
		require.EqualValues(t, 77, mine[left])
		return win.Free()
	}, "direct", "messages", "tcp")
}

// TestWinMutualExclusion checks that locks exclude each other.
func TestWinMutualExclusion(t *testing.T) {
	const n, rounds = 4, 25
	for _, name := range []string{"direct", "messages", "tcp"} {
		t.Run(name, func(t *testing.T) {
			o := winNets[name]
			var inside, most, readers atomic.Int32
			job(t, n, o, func(w mpi.World) error {
				win, mine, err := mpi.WinAllocate[int64](w.Comm, 4)
				require.NoError(t, err)
				for i := range rounds {
					if (i+w.Rank())%4 == 0 { // reads two elements that writers change together
						require.NoError(t, win.Lock(mpi.LockShared, 1))
						most.Store(max(most.Load(), readers.Add(1)))
						require.Zero(t, inside.Load())
						var v [2]int64
						require.NoError(t, win.Get(mpi.Of(v[:1]), 1, mpi.At(0)))
						require.NoError(t, win.Get(mpi.Of(v[1:]), 1, mpi.At(1)))
						require.NoError(t, win.Flush(1))
						require.Equal(t, v[0], v[1])
						readers.Add(-1)
						require.NoError(t, win.Unlock(1))
						continue
					}
					require.NoError(t, win.Lock(mpi.LockExclusive, 1))
					require.EqualValues(t, 1, inside.Add(1))
					require.Zero(t, readers.Load())
					var v int64
					require.NoError(t, win.Get(mpi.Value(&v), 1, mpi.At(0)))
					require.NoError(t, win.Flush(1))
					v++
					require.NoError(t, win.Put(mpi.Of([]int64{v, v}), 1, mpi.At(0)))
					inside.Add(-1)
					require.NoError(t, win.Unlock(1))
				}
				require.NoError(t, w.Barrier())
				if w.Rank() == 1 {
					require.NoError(t, win.Lock(mpi.LockShared, 1))
					writes := 0
					for r := range n {
						for i := range rounds {
							if (i+r)%4 != 0 {
								writes++
							}
						}
					}
					require.EqualValues(t, writes, mine[0])
					require.NoError(t, win.Unlock(1))
				}
				return win.Free()
			})
			t.Logf("at most %d readers at a time", most.Load())
		})
	}
}

// TestWinPassiveTarget checks that operations in locked windows progress while the target makes no
// MPI calls.
func TestWinPassiveTarget(t *testing.T) {
	for name, o := range winNets {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			var done atomic.Int32
			job(t, 3, o, func(w mpi.World) error {
				win, mine, err := mpi.WinAllocate[int64](w.Comm, 5000)
				require.NoError(t, err)
				floats, sums, err := mpi.WinAllocate[float64](w.Comm, 3)
				require.NoError(t, err)
				require.NoError(t, w.Barrier())
				if w.Rank() == 0 {
					<-over // without an MPI call
				} else {
					for range 10 {
						require.NoError(t, win.Lock(mpi.LockExclusive, 0))
						require.NoError(t, win.Accumulate(mpi.Of([]int64{2}), 0, mpi.At(0), mpi.Sum))
						var got int64
						require.NoError(t, win.GetAccumulate(mpi.Of([]int64{int64(w.Rank())}), mpi.Value(&got), 0, mpi.At(1), mpi.Max))
						require.NoError(t, win.CompareAndSwap(mpi.Of([]int64{7}), mpi.Of([]int64{0}), mpi.Value(&got), 0, 2))
						require.NoError(t, win.Put(mpi.Of(make([]int64, 4000)), 0, mpi.At(900)))
						require.NoError(t, win.Put(mpi.Of(make([]int64, 400)), 0, mpi.At(4).Strided(400, 1, 2)))
						require.NoError(t, win.Unlock(0))
						require.NoError(t, floats.LockAll())
						require.NoError(t, floats.Accumulate(mpi.Of([]float64{1, 2, 3}), 0, mpi.At(0), mpi.Sum))
						require.NoError(t, floats.UnlockAll())
					}
					if done.Add(1) == 2 {
						close(over)
					}
				}
				require.NoError(t, w.Barrier())
				if w.Rank() == 0 {
					require.NoError(t, win.Lock(mpi.LockExclusive, 0))
					require.Equal(t, []int64{40, 2, 7}, mine[:3])
					require.NoError(t, win.Unlock(0))
					require.NoError(t, floats.Lock(mpi.LockShared, 0))
					require.Equal(t, []float64{20, 40, 60}, sums)
					require.NoError(t, floats.Unlock(0))
				}
				require.NoError(t, floats.Free())
				return win.Free()
			})
		})
	}
}
