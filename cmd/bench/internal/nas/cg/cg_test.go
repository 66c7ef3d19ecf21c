package cg

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
)

// TestMatrix checks that the blocks of any grid form the same symmetric matrix, with as many
// nonzeros as NPB's.
func TestMatrix(t *testing.T) {
	p := problems[nas.S]
	all := span{0, p.rows}
	whole := makeMatrix(p, all, all)
	require.Len(t, whole.value, 78148)
	elements := whole.elements(all, all)
	for at, v := range elements {
		require.InEpsilon(t, v, elements[[2]int{at[1], at[0]}], 1e-14)
	}
	for _, size := range []int{2, 8, 16} {
		n := 0
		for rank := range size {
			at := newGridPosition(rank, size, p.rows)
			for place, v := range makeMatrix(p, at.rows, at.cols).elements(at.rows, at.cols) {
				require.Equal(t, elements[place], v)
				n++
			}
		}
		require.Len(t, whole.value, n)
	}
}

func (m *matrix) elements(rows, cols span) map[[2]int]float64 {
	list := make(map[[2]int]float64, len(m.value))
	for i := range rows.length() {
		for k := m.begin[i]; k < m.begin[i+1]; k++ {
			list[[2]int{rows.from + i, cols.from + int(m.column[k])}] = m.value[k]
		}
	}
	return list
}

func TestMatrixSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("a large matrix")
	}
	all := span{0, problems[nas.W].rows}
	require.Len(t, makeMatrix(problems[nas.W], all, all).value, 508402)
}

// TestMultiply compares products with the definition, for rows of all lengths.
func TestMultiply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "columns")
		v := rapid.SliceOfN(rapid.Float64Range(-1, 1), n, n).Draw(t, "v")
		m := &matrix{begin: []int32{0}}
		var want []float64
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			sum := 0.0
			for j := range n {
				if rapid.Bool().Draw(t, "there") {
					a := rapid.Float64Range(-1, 1).Draw(t, "a")
					m.column, m.value = append(m.column, int32(j)), append(m.value, a)
					sum += a * v[j]
				}
			}
			m.begin = append(m.begin, int32(len(m.value)))
			want = append(want, sum)
		}
		w := make([]float64, len(want))
		m.multiplyVector(w, v)
		require.InDeltaSlice(t, want, w, 1e-14)
	})
}

// TestPlaces checks for all sizes that blocks cover the matrix, and that transposed ranks have
// each other's rows and columns.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n := 1<<rapid.IntRange(0, 6).Draw(t, "log size"), rapid.IntRange(64, 200).Draw(t, "n")
		area := 0
		for rank := range size {
			p := newGridPosition(rank, size, n)
			require.Equal(t, size, p.width*p.height)
			require.Contains(t, []int{p.height, 2 * p.height}, p.width)
			area += p.rows.length() * p.cols.length()
			other := newGridPosition(p.transposed, size, n)
			require.Equal(t, rank, other.transposed)
			require.Equal(t, p.cols, other.heldRows)
			require.Equal(t, p.heldRows, p.heldRows.intersect(p.rows))
		}
		require.Equal(t, n*n, area)
	})
}
