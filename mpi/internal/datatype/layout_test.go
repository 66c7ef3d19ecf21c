package datatype_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// described is a buffer of uint16 with the indices of its elements in the slice.
type described struct {
	memory []uint16
	buffer datatype.Buffer
	index  []int
}

// drawBuffer draws a buffer, possibly with repeated elements.
func drawBuffer(t *rapid.T) (d described) {
	d.memory = make([]uint16, rapid.IntRange(0, 40).Draw(t, "memory"))
	for i := range d.memory {
		d.memory[i] = uint16(i + 1)
	}
	n := len(d.memory)
	switch rapid.SampledFrom([]string{"of", "strided", "indexed"}).Draw(t, "form") {
	case "of":
		d.buffer = datatype.Of(d.memory)
		for i := range n {
			d.index = append(d.index, i)
		}
	case "strided":
		block := rapid.IntRange(0, n).Draw(t, "block")
		stride := rapid.IntRange(0, n+3).Draw(t, "stride")
		most := 5
		if stride > 0 {
			most = (n-block)/stride + 1
		}
		count := rapid.IntRange(0, most).Draw(t, "count")
		d.buffer = datatype.Strided(d.memory, count, block, stride)
		for i := range count {
			for j := range block {
				d.index = append(d.index, i*stride+j)
			}
		}
	case "indexed":
		var blocks []datatype.Block
		for range rapid.IntRange(0, 6).Draw(t, "blocks") {
			at := rapid.IntRange(0, n).Draw(t, "at")
			blocks = append(blocks, datatype.Block{At: at, Len: rapid.IntRange(0, min(9, n-at)).Draw(t, "len")})
		}
		d.buffer = datatype.Indexed(d.memory, blocks)
		for _, b := range blocks {
			for j := range b.Len {
				d.index = append(d.index, b.At+j)
			}
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "slices") {
		from := rapid.IntRange(0, len(d.index)).Draw(t, "from")
		to := rapid.IntRange(from, len(d.index)).Draw(t, "to")
		d.buffer, d.index = d.buffer.Slice(from, to), d.index[from:to]
	}
	return d
}

func (d described) twice() bool {
	sorted := slices.Clone(d.index)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) < len(d.index)
}

// TestPackAndUnpack checks for any description that the packed message consists of its elements in
// order, for any length, and that unpacking changes these elements only.
func TestPackAndUnpack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawBuffer(t)
		require.NoError(t, d.buffer.Err())
		require.Equal(t, datatype.Uint16, d.buffer.Kind())
		require.Equal(t, len(d.index), d.buffer.Count())
		require.Equal(t, 2*len(d.index), d.buffer.Size())
		require.NotEmpty(t, d.buffer.Describe())
		if d.twice() {
			require.ErrorIs(t, d.buffer.RecvErr(), datatype.ErrLayout)
		}

		var want []uint16
		for _, i := range d.index {
			want = append(want, d.memory[i])
		}
		wire, _ := datatype.Of(want).Contiguous()
		packed := make([]byte, rapid.IntRange(0, len(wire)+3).Draw(t, "room"))
		n := d.buffer.Pack(packed)
		require.Equal(t, min(len(wire), len(packed)), n)
		require.Equal(t, string(wire[:n]), string(packed[:n]))
		require.Equal(t, string(make([]byte, len(packed)-n)), string(packed[n:]), "behind the message")
		if mem, ok := d.buffer.Contiguous(); ok && len(wire) > 0 {
			require.Equal(t, wire, mem)
		}

		src := rapid.SliceOfN(rapid.Byte(), 0, len(wire)+3).Draw(t, "src")
		after, _ := datatype.Of(slices.Clone(d.memory)).Contiguous()
		for i, c := range src[:min(len(src), len(wire))] {
			after[2*d.index[i/2]+i%2] = c
		}
		require.Equal(t, min(len(src), len(wire)), d.buffer.Unpack(src))
		got, _ := datatype.Of(d.memory).Contiguous()
		require.Equal(t, string(after), string(got))
	})
}

// TestColumns checks that columns of words are copied word by word, and partial words byte by byte.
func TestColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "columns")
		width := rapid.IntRange(1, columns).Draw(t, "width")
		m := make([]uint32, rows*columns)
		for i := range m {
			m[i] = 0x01020304 * uint32(i+1)
		}
		b := datatype.Strided(m, rows, width, columns)
		var want []uint32
		for r := range rows {
			want = append(want, m[r*columns:][:width]...)
		}
		wire, _ := datatype.Of(want).Contiguous()
		from := rapid.IntRange(0, len(want)).Draw(t, "from")
		n := rapid.IntRange(0, len(wire)-4*from).Draw(t, "bytes")
		got := make([]byte, n)
		require.Equal(t, n, b.Slice(from, len(want)).Pack(got))
		require.Equal(t, string(wire[4*from:][:n]), string(got))

		again := make([]uint32, len(m))
		r := datatype.Strided(again, rows, width, columns)
		require.Equal(t, n, r.Slice(from, len(want)).Unpack(got))
		back := make([]byte, len(wire))
		r.Pack(back)
		require.Equal(t, string(make([]byte, 4*from))+string(got)+string(make([]byte, len(wire)-4*from-n)), string(back))
	})
}

// TestOverlap checks that overlapping layouts, and only these, are detected.
func TestOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := make([]byte, 20)
		var blocks []datatype.Block
		used, twice := make([]int, 20), false
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			b := datatype.Block{At: rapid.IntRange(0, 20).Draw(t, "at")}
			b.Len = rapid.IntRange(0, min(6, 20-b.At)).Draw(t, "len")
			blocks = append(blocks, b)
			for i := range b.Len {
				used[b.At+i]++
				twice = twice || used[b.At+i] > 1
			}
		}
		b := datatype.Indexed(memory, blocks)
		require.NoError(t, b.Err())
		require.Equal(t, twice, b.RecvErr() != nil, "%v", b.RecvErr())
	})
}

// TestBadDescriptions checks that invalid descriptions have an error with the values, and no
// elements.
func TestBadDescriptions(t *testing.T) {
	x := make([]float64, 10)
	type node struct {
		Value float64
		Next  *node
	}
	type handle struct{ P uintptr }
	for _, c := range []struct {
		buffer datatype.Buffer
		want   string
	}{
		{datatype.Value[int](nil), "nil value"},
		{datatype.Strided(x, -1, 1, 1), "strided buffer: count -1, block 1, stride 1: want no negative number"},
		{datatype.Strided(x, 1, -2, 1), "count 1, block -2"},
		{datatype.Strided(x, 1, 1, -3), "stride -3"},
		{datatype.Strided(x, 4, 2, 3), "strided buffer: count 4, block 2, stride 3 exceed the slice of 10 elements"},
		{datatype.Strided(x, 1, 11, 1), "exceed the slice of 10 elements"},
		{datatype.Strided(x, math.MaxInt, 1, math.MaxInt), "exceed the slice of 10 elements"},
		{datatype.Strided(x, math.MaxInt/16, 4, 0), "overflow int"},
		{datatype.Indexed(x, []datatype.Block{{0, 1}, {-1, 2}}), "indexed buffer: block 1: length 2, index -1: want no negative number"},
		{datatype.Indexed(x, []datatype.Block{{0, -1}}), "block 0: length -1, index 0"},
		{datatype.Indexed(x, []datatype.Block{{8, 3}}), "indexed buffer: block 0: length 3, index 8 exceed the slice of 10 elements"},
		{datatype.Indexed(x, []datatype.Block{{math.MaxInt, math.MaxInt}}), "exceed the slice"},
		{datatype.Of(x).Slice(3, 11), "elements [3, 11) of 10"},
		{datatype.Of(x).Slice(4, 3), "elements [4, 3) of 10"},
		{datatype.Of(x).Slice(-1, 3), "elements [-1, 3) of 10"},
		{datatype.Structs([]node{{}}), "field Next of datatype_test.node: type *datatype_test.node has pointers"},
		{datatype.Structs([][2]struct{ S []int }{{}}), "field [].S of [2]struct { S []int }: type []int has pointers"},
		{datatype.Structs([]string{"a"}), "the element: type string has pointers"},
		{datatype.Structs([]handle{{}}), "field P of datatype_test.handle: type uintptr is an address"},
		{datatype.Structs([]node{{}}, "Value", "Last"), "datatype_test.node has no field Last of its own"},
		{datatype.Structs([]node{{}}, "Value", "Value"), "field Value of datatype_test.node is named twice"},
		{datatype.Structs(x, "Value"), "float64 is not a struct: no field Value"},
	} {
		b := c.buffer
		require.ErrorIs(t, b.Err(), datatype.ErrLayout, c.want)
		require.ErrorContains(t, b.Err(), c.want)
		require.ErrorContains(t, b.RecvErr(), c.want)
		require.Contains(t, b.Describe(), c.want)
		require.Zero(t, b.Count())
		require.Zero(t, b.Size())
		require.Zero(t, b.Pack(make([]byte, 99)))
		require.Zero(t, b.Unpack(make([]byte, 99)))
		_, ok := b.Contiguous()
		require.False(t, ok)
		require.Equal(t, b.Err(), b.Slice(0, 0).Err())
	}
	b := datatype.Strided(x, 3, 3, 2)
	require.NoError(t, b.Err())
	require.ErrorContains(t, b.RecvErr(), "blocks of 3 elements with stride 2 overlap")
	b = datatype.Indexed(x, []datatype.Block{{4, 2}, {0, 1}, {5, 2}})
	require.ErrorContains(t, b.RecvErr(), "blocks 0 (2 at 4) and 2 (2 at 5) overlap")
}

// TestEmpty checks all forms of the empty message.
func TestEmpty(t *testing.T) {
	for _, b := range []datatype.Buffer{
		{}, datatype.Of[int](nil), datatype.Bytes(nil), datatype.Strided([]int{}, 0, 3, 4), datatype.Strided([]int{1}, 9, 0, 4),
		datatype.Indexed([]int8{}, []datatype.Block(nil)), datatype.Structs([]struct{ X int }{}), datatype.Structs(make([]struct{}, 5)),
		datatype.Of([]int{1}).Slice(1, 1), datatype.Strided(make([]int, 9), 3, 1, 2).Slice(3, 3),
	} {
		require.NoError(t, b.Err())
		require.Zero(t, b.Size())
		mem, ok := b.Contiguous()
		require.True(t, ok)
		require.Empty(t, mem)
		require.Zero(t, b.Unpack([]byte{1}))
	}
}

// TestNoAllocation checks that a buffer of a slice allocates nothing.
func TestNoAllocation(t *testing.T) {
	x, y := make([]float64, 100), 1
	wire := make([]byte, 800)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b := datatype.Of(x).Slice(1, 99)
		b.Pack(wire)
		b.Unpack(wire)
		_ = datatype.Value(&y).Size()
		_ = b.Signature().Accept(b.Signature())
		_ = datatype.Sum.Apply(datatype.Float64, wire[:400], wire[400:])
	}))
	columns := datatype.Strided(x, 10, 1, 10)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		columns.Pack(wire)
		columns.Slice(2, 5).Unpack(wire)
	}))
}
