package topology_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/topology"
)

// Six ranks in a grid whose first dimension is a ring.
func Example() {
	dims, err := topology.FillDims(6, []int{0, 0})
	fmt.Println(dims, err)
	g := topology.Grid{Dims: dims, Periods: []bool{true, false}}
	fmt.Println(g.CoordsOf(5), g.RankOf([]int{2, 1}))
	fmt.Println(g.Shift(5, 0, 1))
	// Output:
	// [3 2] <nil>
	// [2 1] 5
	// 3 1
}
