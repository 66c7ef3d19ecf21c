package mpi_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// Each rank has lines of a length that only it knows, and the previous rank reads them. Address and
// number are sent as messages.
func ExampleWinCreateDynamic() {
	err := mpitest.Run(3, func(w mpi.World) error {
		win, err := mpi.WinCreateDynamic(w.Comm)
		if err != nil {
			return err
		}
		line := make([]float64, w.Rank()+1)
		for i := range line {
			line[i] = float64(10*w.Rank() + i)
		}
		at, err := mpi.WinAttach(win, line) // without communication
		if err != nil {
			return err
		}
		next, before := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		there := make([]int, 2)
		if _, err := w.Sendrecv(mpi.Of([]int{at, len(line)}), before, 0, mpi.Of(there), next, 0); err != nil {
			return err
		}
		if err := win.Lock(mpi.LockShared, next); err != nil {
			return err
		}
		got := make([]float64, there[1])
		if err := win.Get(mpi.Of(got), next, mpi.At(there[0])); err != nil {
			return err
		}
		if err := win.Unlock(next); err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println(got)
		}
		if err := w.Barrier(); err != nil { // all ranks have read
			return err
		}
		if err := win.Detach(at); err != nil {
			return err
		}
		return win.Free()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [20 21 22]
}
