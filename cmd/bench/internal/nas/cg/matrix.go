package cg

import (
	"math"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
)

// A span is a range of rows or columns: [from, to).
type span struct{ from, to int }

func (s span) length() int           { return s.to - s.from }
func (s span) contains(i int) bool   { return s.from <= i && i < s.to }
func (s span) intersect(t span) span { return span{max(s.from, t.from), min(s.to, t.to)} }

// A matrix is a block of the matrix in compressed sparse row format.
type matrix struct {
	begin  []int32 // start of each row in column and value, and the end
	column []int32 // relative to the first column of the block
	value  []float64
}

const (
	seed      = 314159265
	condition = 0.1 // reciprocal of the condition number of the matrix
)

// makeMatrix returns the block of rows and columns of a problem's matrix: the sum of w(i) x(i)
// x(i)^T over sparse random vectors x, where w is a geometric sequence from 1 to the condition,
// plus the condition minus the shift on the diagonal.
func makeMatrix(p problem, rows, cols span) *matrix {
	m := &matrix{begin: make([]int32, rows.length()+1)}
	diagonal := rows.intersect(cols)

	// Number of entries of each row before duplicates are merged.
	offsets := make([]int, rows.length()+1)
	eachVector(p, func(_ float64, at []int32, _ []float64) {
		n := 0
		for _, j := range at {
			if cols.contains(int(j)) {
				n++
			}
		}
		for _, i := range at {
			if rows.contains(int(i)) {
				offsets[int(i)-rows.from+1] += n
			}
		}
	})
	for i := diagonal.from; i < diagonal.to; i++ {
		offsets[i-rows.from+1]++
	}
	for i := range rows.length() {
		offsets[i+1] += offsets[i]
	}
	m.column = make([]int32, offsets[rows.length()])
	m.value = make([]float64, offsets[rows.length()])

	next := slices.Clone(offsets)
	add := func(i, j int, v float64) {
		k := &next[i-rows.from]
		m.column[*k], m.value[*k] = int32(j-cols.from), v
		*k++
	}
	eachVector(p, func(weight float64, at []int32, x []float64) {
		for c, j := range at {
			if !cols.contains(int(j)) {
				continue
			}
			scale := weight * x[c]
			for r, i := range at {
				if rows.contains(int(i)) {
					add(int(i), int(j), x[r]*scale)
				}
			}
		}
	})
	for i := diagonal.from; i < diagonal.to; i++ {
		add(i, i, condition-p.shift)
	}
	m.mergeDuplicates(offsets, cols.length())
	return m
}

// eachVector calls f with each vector: its weight, the indices of its nonzeros, and their
// values.
func eachVector(p problem, f func(weight float64, at []int32, x []float64)) {
	random := nas.Random(seed).Next()
	limit := 1 // a power of two
	for limit < p.rows {
		limit *= 2
	}
	at, x := make([]int32, 0, p.nonzer+1), make([]float64, 0, p.nonzer+1)
	weight, ratio := 1.0, math.Pow(condition, 1/float64(p.rows))
	for i := range p.rows {
		at, x = at[:0], x[:0]
		for len(at) < p.nonzer {
			random = random.Next()
			v := random.Float64()
			random = random.Next()
			j := int32(random.Float64() * float64(limit))
			if int(j) < p.rows && !slices.Contains(at, j) {
				at, x = append(at, j), append(x, v)
			}
		}
		if k := slices.Index(at, int32(i)); k >= 0 {
			x[k] = 0.5
		} else {
			at, x = append(at, int32(i)), append(x, 0.5)
		}
		f(weight, at, x)
		weight *= ratio
	}
}

// mergeDuplicates adds up entries with the same position and sorts each row.
func (m *matrix) mergeDuplicates(offsets []int, width int) {
	sum := make([]float64, width)
	seen := make([]int32, width) // the last row that has the column, and 1
	var columns []int32
	end := 0
	for i := range len(m.begin) - 1 {
		columns = columns[:0]
		for k := offsets[i]; k < offsets[i+1]; k++ {
			j := m.column[k]
			if seen[j] != int32(i+1) {
				seen[j], sum[j] = int32(i+1), 0
				columns = append(columns, j)
			}
			sum[j] += m.value[k]
		}
		slices.Sort(columns)
		for _, j := range columns {
			m.column[end], m.value[end] = j, sum[j]
			end++
		}
		m.begin[i+1] = int32(end)
	}
	m.column, m.value = slices.Clip(m.column[:end]), slices.Clip(m.value[:end])
}

// multiplyVector sets w to the product of the matrix and v. Four independent sums hide the
// latency of additions.
func (m *matrix) multiplyVector(w, v []float64) {
	for i := range w {
		c, a := m.column[m.begin[i]:m.begin[i+1]], m.value[m.begin[i]:m.begin[i+1]]
		var s0, s1, s2, s3 float64
		for len(c) >= 4 && len(a) >= 4 {
			s0 += a[0] * v[c[0]]
			s1 += a[1] * v[c[1]]
			s2 += a[2] * v[c[2]]
			s3 += a[3] * v[c[3]]
			c, a = c[4:], a[4:]
		}
		for k, j := range c {
			s0 += a[k] * v[j]
		}
		w[i] = (s0 + s1) + (s2 + s3)
	}
}
