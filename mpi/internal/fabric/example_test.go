package fabric_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// A program runs over each fabric without a change.
func Example() {
	for _, f := range []struct {
		name string
		net  mpi.Net
	}{{"rdma", mpi.RDMA}, {"ud", mpi.UD}, {"hybrid", mpi.Hybrid}, {"tcp", mpi.TCP}} {
		err := mpitest.RunOptions(2, mpi.Options{Net: f.net}, func(w mpi.World) error {
			other := 0
			_, err := w.Sendrecv(mpi.Value(&[]int{10, 11}[w.Rank()]), 1-w.Rank(), 0, mpi.Value(&other), 1-w.Rank(), 0)
			if w.Rank() == 0 {
				fmt.Println(f.name, other)
			}
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// rdma 11
	// ud 11
	// hybrid 11
	// tcp 11
}
