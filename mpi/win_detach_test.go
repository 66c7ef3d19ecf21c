package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestWinDetachDuringAccess detaches memory during operations of other ranks: started operations
// complete, later ones fail, and the memory is not accessed after Detach. Then the same memory
// is attached again with another length.
func TestWinDetachDuringAccess(t *testing.T) {
	winJob(t, 3, func(t *testing.T, w mpi.World) error {
		const most = 4096
		win, err := mpi.WinCreateDynamic(w.Comm)
		require.NoError(t, err)
		mine := make([]int64, most)
		for round := range 4 {
			n := most >> round
			at := make([]int, 1)
			if w.Rank() == 0 {
				at[0], err = mpi.WinAttach(win, mine[:n])
				require.NoError(t, err)
			}
			require.NoError(t, w.Bcast(mpi.Of(at), 0))
			require.NoError(t, win.LockAll())
			if w.Rank() == 0 {
				for range w.Size() - 1 { // have started
					_, err := w.Recv(mpi.Buffer{}, mpi.AnySource, 1)
					require.NoError(t, err)
				}
				require.NoError(t, win.Detach(at[0]))
				for i := range mine {
					mine[i] = -1
				}
				require.NoError(t, win.UnlockAll())
				require.NoError(t, w.Barrier())
				for _, v := range mine {
					require.EqualValues(t, -1, v)
				}
				clear(mine)
				continue
			}
			require.NoError(t, startOperations(w, win, at[0], n))
			require.NoError(t, win.UnlockAll())
			require.NoError(t, w.Barrier())
		}
		return win.Free()
	})
}

// startOperations starts all kinds of operations on this rank's part of the memory of rank 0, each
// on words of its own, until the memory is detached.
func startOperations(w mpi.World, win *mpi.Win, at, n int) error {
	q := n / 2 / 4 // by ranks and kinds of operations
	place := func(way int) int { return at + 8*q*(4*(w.Rank()-1)+way) }
	many, some, got, was := make([]int64, q), []int64{1, 2, 3}, make([]int64, q), int64(0)
	for i := 0; ; i++ {
		var err error
		switch i % 5 {
		case 0:
			err = win.Put(mpi.Of(many), 0, mpi.At(place(0)))
		case 1:
			err = win.Accumulate(mpi.Of(some), 0, mpi.At(place(1)), mpi.Sum)
		case 2:
			err = win.FetchAndOp(mpi.Of(some[:1]), mpi.Value(&was), 0, place(1)+8*(q-1), mpi.Sum)
		case 3:
			err = win.Put(mpi.Of(some[:2]), 0, mpi.At(place(2)).Strided(2, 1, q/2))
		default:
			err = win.Get(mpi.Of(got), 0, mpi.At(place(3)))
		}
		if i == 7 { // while some are in progress
			if err := w.Send(mpi.Buffer{}, 0, 1); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, mpi.ErrRange) && i > 7:
			return win.FlushAll() // operations that were started before have not failed
		case err != nil:
			return fmt.Errorf("operation %d: %w", i, err)
		}
		if i%5 == 4 { // got and was are reused
			if err := win.Flush(0); err != nil {
				return err
			}
		}
	}
}

// TestWinDetachPassive checks that lookups and recalls need no MPI calls of the other rank's
// program.
func TestWinDetachPassive(t *testing.T) {
	for name, o := range winNets {
		t.Run(name, func(t *testing.T) {
			put, detached := make(chan struct{}), make(chan struct{})
			job(t, 2, o, func(w mpi.World) error {
				win, err := mpi.WinCreateDynamic(w.Comm)
				require.NoError(t, err)
				mine := make([]int64, 600)
				at, err := mpi.WinAttach(win, mine)
				require.NoError(t, err)
				all := addresses(t, w, at)
				if w.Rank() == 0 {
					<-put // without an MPI call
					require.NoError(t, win.Detach(at))
					require.EqualValues(t, 5, mine[599])
					close(detached)
				} else {
					require.NoError(t, win.Lock(mpi.LockShared, 0))
					many := make([]int64, 600)
					many[599] = 5
					require.NoError(t, win.Put(mpi.Of(many), 0, mpi.At(all[0])))
					require.NoError(t, win.Flush(0))
					close(put)
					<-detached
					err := win.Put(mpi.Of(many[:1]), 0, mpi.At(all[0]))
					require.ErrorIs(t, err, mpi.ErrRange)
					require.NoError(t, win.Unlock(0))
				}
				return win.Free()
			})
		})
	}
}
