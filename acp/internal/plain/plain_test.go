package plain_test

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp/internal/plain"
)

func TestIsPlain(t *testing.T) {
	for _, v := range []any{true, int8(1), uint64(1), 1.5, complex64(1), [3]int{}, struct {
		a int
		b [2]float32
	}{}} {
		require.True(t, plain.IsPlain(reflect.TypeOf(v)), "%T", v)
	}
	for _, v := range []any{"", []int{}, new(int), map[int]int{}, make(chan int), func() {}, uintptr(0), unsafe.Pointer(nil),
		[1]string{}, struct{ p *int }{}, struct{ x any }{}} {
		require.False(t, plain.IsPlain(reflect.TypeOf(v)), "%T", v)
	}
}

func TestBytesOf(t *testing.T) {
	v := []uint16{1, 2}
	b := plain.BytesOf(v)
	require.Len(t, b, 4)
	clear(b)
	require.Equal(t, []uint16{0, 0}, v)
	require.Equal(t, []byte{}, plain.BytesOf[int](nil))
	require.Empty(t, plain.BytesOf(make([]struct{}, 3)))
}

func ExampleBytesOf() {
	fmt.Println(plain.BytesOf([]int8{1, -1}))
	// Output: [1 255]
}
