package sparse_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/sparse"
)

// A table has the elements that were added, in the order of their numbers.
func Example() {
	table := sparse.Make[string](1 << 20)
	*table.Get(700_000) = "last"
	*table.Get(3) = "first"
	for i, s := range table.All() {
		fmt.Println(i, *s)
	}
	fmt.Println(table.Find(4) == nil)
	// Output:
	// 3 first
	// 700000 last
	// true
}

// TestModel compares a table with a map.
func TestModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var table sparse.Table[int]
	model := map[int]*int{}
	for range 10_000 {
		i := rng.IntN(300)
		switch rng.IntN(3) {
		case 0:
			require.True(t, table.Find(i) == model[i])
		case 1:
			e := table.Get(i)
			require.True(t, model[i] == nil && *e == 0 || e == model[i])
			*e, model[i] = i+1, e
		case 2:
			table.Remove(i)
			delete(model, i)
		}
	}
	require.Equal(t, model, maps.Collect(table.All()))
	var numbers []int
	for i := range table.All() {
		numbers = append(numbers, i)
		if len(numbers) == 5 {
			break
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(model))[:5], numbers)
}
