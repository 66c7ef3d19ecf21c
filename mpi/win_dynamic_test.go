package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// addresses exchanges the addresses of all ranks.
func addresses(t *testing.T, w mpi.World, mine int) []int {
	all := make([]int, w.Size())
	require.NoError(t, w.Allgather(mpi.Of([]int{mine}), mpi.Of(all)))
	return all
}

// TestWinDynamic executes all operations between all synchronization calls on attached memory.
func TestWinDynamic(t *testing.T) {
	winJob(t, 3, func(t *testing.T, w mpi.World) error {
		win, err := mpi.WinCreateDynamic(w.Comm)
		require.NoError(t, err)
		require.Zero(t, win.Size(1))
		require.Equal(t, 1, win.Unit(1))
		words, floats := make([]int64, 10), make([]float32, 2000)
		at, err := mpi.WinAttach(win, words)
		require.NoError(t, err)
		require.Equal(t, mpi.Address(words), at)
		require.Equal(t, at+8*3, mpi.Address(words[3:]))
		other, err := mpi.WinAttach(win, floats)
		require.NoError(t, err)
		wordsAt, floatsAt := addresses(t, w, at), addresses(t, w, other)

		to, me := (w.Rank()+1)%3, int64(w.Rank())
		from := (w.Rank() + 2) % 3
		require.NoError(t, win.Fence())
		require.NoError(t, win.Put(mpi.Of([]int64{me, me}), to, mpi.At(wordsAt[to])))
		require.NoError(t, win.Put(mpi.Of([]int64{7, 8, 9}), w.Rank(), mpi.At(at+8*2).Strided(3, 1, 2)))
		require.NoError(t, win.Accumulate(mpi.Of([]float32{1, 2}), to, mpi.At(floatsAt[to]).Indexed([]mpi.Block{{At: 5, Len: 1}, {At: 2, Len: 1}}), mpi.Sum))
		require.NoError(t, win.Fence(mpi.NoSucceed))
		require.Equal(t, []int64{int64(from), int64(from), 7, 0, 8, 0, 9, 0, 0, 0}, words)
		require.Equal(t, []float32{0, 0, 2, 0, 0, 1}, floats[:6])

		require.NoError(t, win.Post(win.Group()))
		require.NoError(t, win.Start(win.Group()))
		var was, swapped int64
		require.NoError(t, win.CompareAndSwap(mpi.Of([]int64{11}), mpi.Of([]int64{7}), mpi.Value(&swapped), to, wordsAt[to]+8*2))
		require.NoError(t, win.FetchAndOp(mpi.Of([]int64{5}), mpi.Value(&was), to, wordsAt[to]+8*3, mpi.Sum))
		require.NoError(t, win.Complete())
		require.NoError(t, win.Wait())
		require.EqualValues(t, 7, swapped)
		require.Zero(t, was)
		require.Equal(t, []int64{11, 5}, words[2:4])

		require.NoError(t, w.Barrier())
		require.NoError(t, win.LockAll())
		got, many := make([]int64, 2), make([]float32, 1900)
		r, err := win.RgetAccumulate(mpi.Of([]int64{1, 2}), mpi.Of(got), to, mpi.At(wordsAt[to]+8*2), mpi.Sum)
		require.NoError(t, err)
		_, err = r.Wait()
		require.NoError(t, err)
		require.Equal(t, []int64{11, 5}, got)
		for i := range many {
			many[i] = float32(i)
		}
		r, err = win.Rput(mpi.Of(many), to, mpi.At(floatsAt[to]+4*100))
		require.NoError(t, err)
		_, err = r.Wait()
		require.NoError(t, err)
		require.NoError(t, win.Flush(to))
		back := make([]float32, 1900)
		r, err = win.Rget(mpi.Of(back), to, mpi.At(floatsAt[to]+4*100))
		require.NoError(t, err)
		_, err = r.Wait()
		require.NoError(t, err)
		require.Equal(t, many, back)
		require.NoError(t, win.Put(mpi.Of([]int64{}), to, mpi.At(5)))
		require.NoError(t, win.UnlockAll())
		require.NoError(t, w.Barrier())
		require.NoError(t, win.Detach(other))
		return win.Free() // and the remaining ones with it
	})
}
