package rma_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

var kinds = []datatype.Kind{datatype.Byte, datatype.Bool, datatype.Int8, datatype.Int16, datatype.Int32, datatype.Int64,
	datatype.Uint8, datatype.Uint32, datatype.Uint64, datatype.Float32, datatype.Float64, datatype.Complex128, datatype.PairInt64}

// TestAccumulate checks that Accumulate applies the operation to each element and returns the old
// values, at any address.
func TestAccumulate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		op := rapid.SampledFrom(datatype.Ops()).Draw(t, "op")
		size := kind.Size()
		var blocks []datatype.Block
		at := 0
		for range rapid.IntRange(1, 4).Draw(t, "blocks") {
			at += rapid.IntRange(0, 2).Draw(t, "gap")
			blocks = append(blocks, datatype.Block{At: at, Len: rapid.IntRange(1, 3).Draw(t, "len")})
			at += blocks[len(blocks)-1].Len
		}
		n := 0
		for _, b := range blocks {
			n += b.Len
		}
		off := rapid.SampledFrom([]int{0, 0, 1, 4}).Draw(t, "misaligned")
		mem := make([]byte, off+at*size+8)[off:]
		copy(mem, rapid.SliceOfN(rapid.Byte(), len(mem), len(mem)).Draw(t, "memory"))
		data := rapid.SliceOfN(rapid.Byte(), n*size, n*size).Draw(t, "data")

		place := rma.At(0).Indexed(blocks)
		vectors, _ := place.AppendVectors(new(rma.Cursor), make([]rma.Vector, 0, len(blocks)), n, size, size)
		target := rma.Target{Element: rma.DenseElement(size), Vectors: vectors}
		m := rma.Memory{Bytes: mem}
		before := bytes.Clone(mem)
		want := bytes.Clone(mem)
		i := 0
		valid := op.Valid(kind)
		wantOld := make([]byte, 0, n*size)
		for _, b := range blocks {
			for j := range b.Len {
				wantOld = append(wantOld, before[(b.At+j)*size:][:size]...)
				if valid == nil {
					require.NoError(t, op.Apply(kind, want[(b.At+j)*size:][:size], data[i*size:][:size]))
				}
				i++
			}
		}
		old := make([]byte, n*size)
		err := m.Accumulate(&target, op, kind, data, old)
		if valid != nil {
			require.ErrorIs(t, err, datatype.ErrOp)
			require.Equal(t, before, mem)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, mem)
		require.Equal(t, wantOld, old)
	})
}

// TestAccumulateGaps checks that elements with gaps are combined, and the gaps do not change.
func TestAccumulateGaps(t *testing.T) {
	ps := []datatype.Pair[int32]{{Value: 5, Index: 1}, {Value: 7, Index: 2}}
	mem, _, err := datatype.Raw(ps)
	require.NoError(t, err)
	copy(mem[4:], "gaps")
	in := datatype.Pairs([]datatype.Pair[int32]{{Value: 9, Index: 3}, {Value: 6, Index: 4}})
	data := make([]byte, in.Size())
	in.Pack(data)
	extent, pieces := in.Element()
	target := rma.Target{Element: rma.Element{Size: in.ElementSize(), Extent: extent, Pieces: pieces},
		Vectors: []rma.Vector{{N: 2, Count: 1}}}
	require.NoError(t, target.Validate(len(mem), len(data)))
	m := rma.Memory{Bytes: mem}
	old := make([]byte, len(data))
	require.NoError(t, m.Accumulate(&target, datatype.MaxLoc, in.Kind(), data, old))
	require.Equal(t, []datatype.Pair[int32]{{Value: 9, Index: 3}, {Value: 7, Index: 2}}, ps)
	require.Equal(t, "gaps", string(mem[4:8]))
	was := make([]datatype.Pair[int32], 2)
	datatype.Pairs(was).Unpack(old)
	require.Equal(t, []datatype.Pair[int32]{{Value: 5, Index: 1}, {Value: 7, Index: 2}}, was)
}

func TestCompareAndSwap(t *testing.T) {
	for _, kind := range kinds {
		size := kind.Size()
		mem := bytes.Repeat([]byte{3}, 2*size)
		target := rma.Target{Element: rma.DenseElement(size), Vectors: []rma.Vector{{Off: size, N: 1, Count: 1}}}
		m := rma.Memory{Bytes: mem}
		other, is, new, old := bytes.Repeat([]byte{2}, size), bytes.Repeat([]byte{3}, size), bytes.Repeat([]byte{4}, size), make([]byte, size)
		err := m.CompareAndSwap(&target, kind, new, other, old)
		if rma.CheckSwap(kind) != nil {
			require.ErrorIs(t, err, datatype.ErrSignature)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, is, old)
		require.Equal(t, bytes.Repeat([]byte{3}, 2*size), mem)
		require.NoError(t, m.CompareAndSwap(&target, kind, new, is, old))
		require.Equal(t, is, old)
		require.Equal(t, append(bytes.Clone(is), new...), mem)
	}
}

// TestWordsAreAtomic checks that words are combined atomically with respect to package sync/atomic.
func TestWordsAreAtomic(t *testing.T) {
	const n = 2000
	words := make([]int64, 1)
	mem, kind, _ := datatype.Raw(words)
	one, _, _ := datatype.Raw([]int64{1})
	least, _, _ := datatype.Raw([]int64{0})
	target := rma.Target{Element: rma.DenseElement(8), Vectors: []rma.Vector{{N: 1, Count: 1}}}
	var both sync.WaitGroup
	both.Go(func() {
		m := rma.Memory{Bytes: mem}
		old := make([]byte, 8)
		for range n {
			require.NoError(t, m.Accumulate(&target, datatype.Sum, kind, one, old))
		}
	})
	both.Go(func() {
		for range n {
			atomic.AddInt64(&words[0], 1)
		}
	})
	both.Go(func() {
		m := rma.Memory{Bytes: mem}
		for range n { // changes nothing, but could overwrite concurrent changes
			require.NoError(t, m.Accumulate(&target, datatype.Max, kind, least, nil))
		}
	})
	both.Wait()
	require.EqualValues(t, 2*n, words[0])
}

// FuzzTarget checks that any packet is rejected, or stays within the window.
func FuzzTarget(f *testing.F) {
	good := rma.Target{Element: elements[3], Vectors: []rma.Vector{{Off: 8, Stride: 32, N: 1, Count: 2}}}
	f.Add(append(good.Append(nil), make([]byte, 24)...), 100)
	f.Add(append((&rma.Target{Element: rma.DenseElement(8), Vectors: []rma.Vector{{Off: 1 << 29, Stride: 1 << 29, N: 1 << 30, Count: 1 << 30}}}).Append(nil), make([]byte, 64)...), 64)
	f.Fuzz(func(t *testing.T, packet []byte, size int) {
		if size < 0 || size > 1<<16 {
			return
		}
		var in rma.Target
		data, err := in.Decode(packet)
		if err != nil {
			require.ErrorIs(t, err, rma.ErrMalformed)
			return
		}
		if in.Validate(size, len(data)) != nil {
			return
		}
		require.LessOrEqual(t, in.Bytes(), len(data))
		guarded := make([]byte, size+16)
		mem := guarded[8 : 8+size : 8+size]
		in.Scatter(mem, data)
		out := make([]byte, in.Bytes())
		in.Gather(out, mem)
		require.Equal(t, make([]byte, 8), guarded[:8])
		require.Equal(t, make([]byte, 8), guarded[8+size:])
		m := rma.Memory{Bytes: mem}
		for _, kind := range kinds {
			_ = m.Accumulate(&in, datatype.Sum, kind, data, nil)
		}
	})
}

// TestUnusable calls every exported function and method of values that packets and programs
// make with zero values and with arguments out of range: each returns.
func TestUnusable(t *testing.T) {
	live := func(make func() any) []misuse.Receiver {
		return []misuse.Receiver{{Name: "zero", Usable: true, Make: make}}
	}
	s := &misuse.Surface{
		Dir:    ".",
		NoNull: "values, of which package mpi holds no pointer that may be nil",
		Funcs:  map[string]any{"At": rma.At, "DenseElement": rma.DenseElement, "CheckSwap": rma.CheckSwap, "IsAtomicWord": rma.IsAtomicWord},
		Types: map[string][]misuse.Receiver{
			"Element": live(func() any { return &rma.Element{} }),
			"Memory":  live(func() any { return &rma.Memory{} }),
			"Place":   live(func() any { p := rma.At(0); return &p }),
			"Span":    live(func() any { return rma.Span{} }),
			"Spans":   live(func() any { return &rma.Spans[int]{} }),
			"Target":  live(func() any { return &rma.Target{} }),
		},
		Values: []any{&rma.Target{}, datatype.Kind(200), datatype.Op{}, []rma.Vector{{}}, []datatype.Block{{At: -5, Len: -1}}},
		Except: map[string]string{
			"Place.AppendVectors": "continues with the caller's cursor",
		},
	}
	s.Check(t)
}
