package comm_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
)

// Rank 1 of a communicator of the ranks 2 and 5 of a job.
func Example() {
	var c comm.Comm
	c.Init(nil, 4, "pair", []int{2, 5}, 1, 2)
	fmt.Println(c.Name(), c.WorldRank(0), c.LocalRank(5), c.LocalRank(3) == comm.Undefined)
	fmt.Println(c.DescribeRank(5))
	// Output:
	// pair 2 1 true
	// 1, rank 5 of the job
}
