package mpi_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// Ranks draw numbers from a counter at rank 0, which makes no call for it, and store them in its
// window.
func ExampleWin() {
	err := mpitest.Run(3, func(w mpi.World) error {
		win, mine, err := mpi.WinAllocate[int64](w.Comm, 4) // the counter, and an element for each number
		if err != nil {
			return err
		}
		if err := win.LockAll(); err != nil {
			return err
		}
		number := int64(0)
		if err := win.FetchAndOp(mpi.Of([]int64{1}), mpi.Value(&number), 0, 0, mpi.Sum); err != nil {
			return err
		}
		if err := win.Flush(0); err != nil {
			return err
		}
		if err := win.Put(mpi.Of([]int64{10 * number}), 0, mpi.At(1+int(number))); err != nil {
			return err
		}
		if err := win.UnlockAll(); err != nil {
			return err
		}
		if err := win.Fence(mpi.NoSucceed); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(mine)
		}
		return win.Free()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [3 0 10 20]
}
