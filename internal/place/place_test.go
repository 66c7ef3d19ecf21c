package place_test

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/place"
)

// TestAtomics checks that concurrent additions and exchanges are all executed.
func TestAtomics(t *testing.T) {
	const n, each = 4, 1000
	var sum, won uint64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for range each {
				place.FetchAdd(&sum, 3)
				for old := uint64(0); ; {
					got := place.CompareSwap(&won, old, old+1)
					if got == old {
						break
					}
					old = got
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, []uint64{3 * n * each, n * each}, []uint64{sum, won})
}

// TestWord64 accepts only aligned memory of 8 bytes.
func TestWord64(t *testing.T) {
	mem := unsafe.Slice((*byte)(unsafe.Pointer(new([3]uint64))), 24)
	for at := range 17 {
		word, ok := place.Word64(mem[at:])
		require.Equal(t, at%8 == 0, ok, at)
		if ok {
			require.Same(t, &mem[at], (*byte)(unsafe.Pointer(word)))
		}
	}
	_, ok := place.Word64(mem[17:])
	require.False(t, ok)
}

func ExampleCopy() {
	memory := make([]byte, 16)
	place.Copy(memory[8:], []byte("8 bytes!"))
	fmt.Printf("%q\n", memory[8:])
	// Output: "8 bytes!"
}
