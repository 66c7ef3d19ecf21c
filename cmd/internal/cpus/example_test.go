package cpus_test

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
)

// Four ranks on two processors: each rank gets one processor.
func ExampleSetOf() {
	sets := [][]int{{0}, {1}} // of Binding.CPUSets
	for rank := range 4 {
		fmt.Println(rank, cpus.SetOf(sets, rank))
	}
	// Output:
	// 0 [0]
	// 1 [1]
	// 2 [0]
	// 3 [1]
}
