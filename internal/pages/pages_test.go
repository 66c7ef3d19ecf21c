package pages_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/pages"
)

func Example() {
	mem, free := pages.Alloc(1 << 20)
	defer free()
	copy(mem, "hello")
	fmt.Println(len(mem), string(mem[:5]), mem[5])
	// Output: 1048576 hello 0
}

// TestAlloc checks for several sizes that the memory has the requested length, is zero, and
// overlaps no other.
func TestAlloc(t *testing.T) {
	var all [][]byte
	for i, n := range []int{0, 1, 4096, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 3<<20 + 5} {
		mem, free := pages.Alloc(n)
		defer free()
		require.Len(t, mem, n)
		require.Equal(t, make([]byte, n), mem)
		for j := range mem {
			mem[j] = byte(i + 1)
		}
		all = append(all, mem)
	}
	for i, mem := range all {
		for _, b := range mem {
			if b != byte(i+1) {
				t.Fatalf("memory %d has what was written to %d", i, b-1)
			}
		}
	}
}

// TestNotTheHeap checks that large memory is not on the Go heap.
func TestNotTheHeap(t *testing.T) {
	if mem, free := pages.Mapped(1 << 20); mem == nil {
		t.Skip("this system, or the race detector, has none but the heap's")
	} else {
		free()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mem, free := pages.Alloc(64 << 20)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
	mem[len(mem)-1] = 1
	free()
}
