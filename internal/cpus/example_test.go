package cpus_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/cpus"
)

// Four ranks on a machine of two cores with a hardware thread each.
func ExampleBinding_Sets() {
	sets, err := cpus.Auto.Sets(4, [][]int{{0}, {1}})
	for rank := range 4 {
		fmt.Println(rank, cpus.Turn(sets, rank), err)
	}
	// Output:
	// 0 [0] <nil>
	// 1 [1] <nil>
	// 2 [0] <nil>
	// 3 [1] <nil>
}
