package hybrid_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// Each of four ranks is connected to at most one other.
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
