package hybrid_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// Of four ranks each is connected with one other at most.
func Example() {
	o := mpi.Options{Net: mpi.Hybrid, RCLimit: 1} // or SOFTRNIC_MPI_NET=hybrid SOFTRNIC_MPI_RC_LIMIT=1
	err := mpitest.RunOptions(4, o, func(w mpi.World) error {
		send, recv := []int{10 * w.Rank(), 10*w.Rank() + 1, 10*w.Rank() + 2, 10*w.Rank() + 3}, make([]int, 4)
		err := w.Alltoall(mpi.Of(send), mpi.Of(recv))
		if w.Rank() == 1 {
			fmt.Println(recv, w.Stats().Connections)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// [1 11 21 31] 1
	// <nil>
}
