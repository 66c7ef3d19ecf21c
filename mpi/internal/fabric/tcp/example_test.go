package tcp_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// Ranks exchange messages over TCP, without an adapter.
func Example() {
	o := mpi.Options{Net: mpi.TCP} // or SOFTRNIC_MPI_NET=tcp
	err := mpitest.RunOptions(3, o, func(w mpi.World) error {
		n := 0
		if w.Rank() == 1 {
			n = 7
		}
		err := w.Bcast(mpi.Value(&n), 1)
		if w.Rank() == 2 {
			fmt.Println(n, "from rank 1")
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// 7 from rank 1
	// <nil>
}
