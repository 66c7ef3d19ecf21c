package rma_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// where returns the offsets of the bytes of all elements, computed one by one.
type where struct {
	place  rma.Place
	disp   int
	blocks []datatype.Block
	n      int
}

func drawPlace(t *rapid.T, most int) where {
	w := where{disp: rapid.IntRange(0, most).Draw(t, "disp")}
	switch rapid.IntRange(0, 2).Draw(t, "layout") {
	case 0:
		w.n = rapid.IntRange(1, most).Draw(t, "n")
		w.place = rma.At(w.disp)
		w.blocks = []datatype.Block{{At: 0, Len: w.n}}
	case 1:
		count, block := rapid.IntRange(1, 6).Draw(t, "count"), rapid.IntRange(1, 4).Draw(t, "block")
		stride := rapid.IntRange(0, 6).Draw(t, "stride")
		w.place = rma.At(w.disp).Strided(count, block, stride)
		for i := range count {
			w.blocks = append(w.blocks, datatype.Block{At: i * stride, Len: block})
		}
		w.n = count * block
	default:
		for range rapid.IntRange(1, 6).Draw(t, "blocks") {
			b := datatype.Block{At: rapid.IntRange(0, most).Draw(t, "at"), Len: rapid.IntRange(0, 4).Draw(t, "len")}
			w.blocks = append(w.blocks, b)
			w.n += b.Len
		}
		w.place = rma.At(w.disp).Indexed(w.blocks)
	}
	return w
}

// bytes returns the offset of each byte of the message, and the one behind the last.
func (w *where) bytes(e rma.Element, unit int) (list []int, end int) {
	pieces := e.Pieces
	if pieces == nil {
		pieces = []rma.Piece{{Off: 0, Len: e.Size}}
	}
	for _, b := range w.blocks {
		for i := range b.Len {
			at := w.disp*unit + (b.At+i)*e.Extent
			for _, p := range pieces {
				for j := range p.Len {
					list = append(list, at+p.Off+j)
				}
			}
			end = max(end, at+e.Extent)
		}
	}
	return list, end
}

// firstByte returns the offset of the first byte of an element's data.
func firstByte(e rma.Element) int {
	if e.Pieces == nil {
		return 0
	}
	return e.Pieces[0].Off
}

var elements = []rma.Element{
	rma.DenseElement(1), rma.DenseElement(4), rma.DenseElement(8),
	{Size: 12, Extent: 16, Pieces: []rma.Piece{{Off: 0, Len: 4}, {Off: 8, Len: 8}}},
	{Size: 3, Extent: 4, Pieces: []rma.Piece{{Off: 1, Len: 3}}},
}

// TestPlace checks that a location that is divided into packets has the same bytes.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(elements).Draw(t, "element")
		unit := rapid.SampledFrom([]int{1, 4, 8}).Draw(t, "unit")
		w := drawPlace(t, 12)
		want, end := w.bytes(e, unit)
		if w.n > 0 {
			require.ErrorIs(t, w.place.Validate(w.n, e.Extent, unit, end-1), rma.ErrRange)
			require.ErrorIs(t, w.place.Validate(w.n+1, e.Extent, unit, end), cond(w.place.IsContiguous(), rma.ErrRange, datatype.ErrCount))
		}
		require.NoError(t, w.place.Validate(w.n, e.Extent, unit, end))
		from, size, err := w.place.Span(w.n, e.Extent)
		require.NoError(t, err)
		if w.n > 0 {
			require.Equal(t, end, w.disp*unit+from+size)
			require.Equal(t, slices.Min(want), w.disp*unit+from+firstByte(e))
			moved := w.place.WithDisp(w.disp + 3)
			require.Equal(t, w.disp+3, moved.Disp())
			require.NoError(t, moved.Validate(w.n, e.Extent, unit, end+3*unit))
		}

		mem, src := make([]byte, end), make([]byte, w.n*e.Size)
		for i := range src {
			src[i] = byte(i + 1)
		}
		expect := make([]byte, end)
		for i, at := range want {
			expect[at] = src[i]
		}
		var cursor rma.Cursor
		room := rapid.IntRange(1, 4).Draw(t, "room")
		for done := 0; done < w.n; {
			vectors, n := w.place.AppendVectors(&cursor, make([]rma.Vector, 0, room), min(w.n-done, rapid.IntRange(1, 20).Draw(t, "some")), e.Extent, unit)
			require.Positive(t, n)
			require.LessOrEqual(t, len(vectors), room)
			out := rma.Target{Element: e, Vectors: vectors}
			require.Equal(t, n, out.Elements())
			packet := out.Append(nil)
			require.Len(t, packet, e.EncodedSize(len(vectors)))
			var in rma.Target
			rest, err := in.Decode(append(packet, 7))
			require.NoError(t, err)
			require.Equal(t, []byte{7}, rest)
			require.NoError(t, in.Validate(end, n*e.Size))
			require.ErrorIs(t, in.Validate(end, n*e.Size-1), rma.ErrMalformed)
			in.Scatter(mem, src[done*e.Size:][:n*e.Size])
			done += n
		}
		require.Equal(t, expect, mem)
	})
}

func cond(c bool, a, b error) error {
	if c {
		return a
	}
	return b
}

// TestPlaceErrors checks that invalid locations return an error at the origin.
func TestPlaceErrors(t *testing.T) {
	negative := rma.At(-1)
	require.ErrorIs(t, negative.Validate(1, 8, 8, 800), rma.ErrRange)
	for _, p := range []rma.Place{rma.At(0).Strided(-1, 1, 1), rma.At(0).Strided(1, -1, 1), rma.At(0).Strided(1, 1, -1),
		rma.At(0).Strided(math.MaxInt, 2, 1), rma.At(0).Indexed([]datatype.Block{{At: -1, Len: 1}}),
		rma.At(0).Indexed([]datatype.Block{{At: 0, Len: -1}}),
		rma.At(0).Indexed([]datatype.Block{{At: 0, Len: math.MaxInt}, {At: 0, Len: 1}})} {
		require.ErrorIs(t, p.Validate(1, 8, 8, 800), datatype.ErrLayout, p.String())
	}
	for _, p := range []rma.Place{rma.At(100), rma.At(math.MaxInt), rma.At(0).Strided(2, 1, math.MaxInt),
		rma.At(0).Indexed([]datatype.Block{{At: math.MaxInt, Len: 2}}), rma.At(99).Strided(2, 1, 1)} {
		n := 2
		require.ErrorIs(t, p.Validate(n, 8, 8, 800), rma.ErrRange, p.String())
	}
	require.Equal(t, "5 (3 blocks of 1, 2 apart)", rma.At(5).Strided(3, 1, 2).String())
}
