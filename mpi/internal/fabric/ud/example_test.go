package ud_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// Ranks exchange messages in datagrams.
func Example() {
	o := mpi.Options{Net: mpi.UD, UD: mpi.UDOptions{Eager: 4000}} // or SOFTRNIC_MPI_NET=ud
	err := mpitest.RunOptions(3, o, func(w mpi.World) error {
		sum := 0
		err := w.Allreduce(mpi.Value(&[]int{1, 2, 4}[w.Rank()]), mpi.Value(&sum), mpi.Sum)
		if w.Rank() == 0 {
			fmt.Println(sum)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// 7
	// <nil>
}
