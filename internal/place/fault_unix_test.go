//go:build unix

package place_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/place"
)

// halfReadable maps two pages of which only the first can be accessed.
func halfReadable(t testing.TB) (mem []byte, page int) {
	page = os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Munmap(mem) })
	require.NoError(t, unix.Mprotect(mem[page:], unix.PROT_NONE))
	return mem, page
}

// TestFaults checks that access to memory that the system protects is reported, whatever its length
// and position, and access to other memory is not.
func TestFaults(t *testing.T) {
	mem, page := halfReadable(t)
	own := make([]byte, 2*page)
	for name, access := range map[string]func(b []byte) bool{
		"copy to":   func(b []byte) bool { return place.Copy(b, own[:len(b)]) },
		"copy from": func(b []byte) bool { return place.Copy(own[:len(b)], b) },
		"load":      func(b []byte) bool { return place.Load(own[:len(b)], b) },
		"readable":  place.Readable,
		"try":       func(b []byte) bool { return place.Try(func() { clear(b) }) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 3, 4, 8, 9, 100, page} {
				require.True(t, access(mem[page-n:page]), "%d bytes", n)
				require.False(t, access(mem[page:page+n]), "%d bytes", n)
				require.False(t, access(mem[page-n:page+1]), "%d bytes and one", n)
			}
		})
	}
	word := (*uint64)(unsafe.Pointer(&mem[page]))
	require.False(t, place.Try(func() { place.CompareSwap(word, 0, 1) }))
	require.False(t, place.Try(func() { place.FetchAdd(word, 1) }))
	require.True(t, place.Copy(nil, nil))
}

// TestOtherPanicsGoOn checks that panics other than memory faults are not recovered.
func TestOtherPanicsGoOn(t *testing.T) {
	errOther := errors.New("other")
	require.PanicsWithValue(t, errOther, func() { place.Try(func() { panic(errOther) }) })
	var none *int
	require.Panics(t, func() { place.Try(func() { *none = 1 }) })
}

func ExampleTry() {
	var n byte
	mem := []byte{7}
	ok := place.Try(func() { n = mem[0] })
	fmt.Println(n, ok)
	// Output: 7 true
}
