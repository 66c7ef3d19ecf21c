package cg

import (
	"math"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
)

// span is some rows, or columns: [from, to).
type span struct{ from, to int }

func (s span) length() int           { return s.to - s.from }
func (s span) contains(i int) bool   { return s.from <= i && i < s.to }
func (s span) intersect(t span) span { return span{max(s.from, t.from), min(s.to, t.to)} }

// matrix is a block of the matrix, a row after the other (compressed sparse rows).
type matrix struct {
	begin  []int32 // of each row in the others; one more is the end
	column []int32 // from the block's first
	value  []float64
}

const (
	seed      = 314159265
	condition = 0.1 // the reciprocal of the matrix's
)

// makeMatrix makes the block of rows and columns of a problem's matrix: the sum of
// w(i) x(i) x(i)^T over sparse random vectors x, with w a geometric sequence from 1
// to the condition, plus the condition minus the shift in the diagonal.
func makeMatrix(p problem, rows, cols span) *matrix {
	m := &matrix{begin: make([]int32, rows.length()+1)}
	diagonal := rows.intersect(cols)

	// How much each row has before equal places are added up.
	room := make([]int, rows.length()+1)
	eachVector(p, func(_ float64, at []int32, _ []float64) {
		n := 0
		for _, j := range at {
			if cols.contains(int(j)) {
				n++
			}
		}
		for _, i := range at {
			if rows.contains(int(i)) {
				room[int(i)-rows.from+1] += n
			}
		}
	})
	for i := diagonal.from; i < diagonal.to; i++ {
		room[i-rows.from+1]++
	}
	for i := range rows.length() {
		room[i+1] += room[i]
	}
	m.column = make([]int32, room[rows.length()])
	m.value = make([]float64, room[rows.length()])

	next := slices.Clone(room)
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
	m.mergeDuplicates(room, cols.length())
	return m
}

// eachVector calls f with each vector: its weight, where it is not zero, and what it
// is there.
func eachVector(p problem, f func(weight float64, at []int32, x []float64)) {
	random := nas.Random(seed).Next()
	places := 1 // a power of two
	for places < p.rows {
		places *= 2
	}
	at, x := make([]int32, 0, p.nonzer+1), make([]float64, 0, p.nonzer+1)
	weight, ratio := 1.0, math.Pow(condition, 1/float64(p.rows))
	for i := range p.rows {
		at, x = at[:0], x[:0]
		for len(at) < p.nonzer {
			random = random.Next()
			v := random.Float64()
			random = random.Next()
			j := int32(random.Float64() * float64(places))
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

// mergeDuplicates adds up what has the same place, and puts each row in order.
func (m *matrix) mergeDuplicates(room []int, width int) {
	sum := make([]float64, width)
	seen := make([]int32, width) // the last row that has the column, and 1
	var columns []int32
	end := 0
	for i := range len(m.begin) - 1 {
		columns = columns[:0]
		for k := room[i]; k < room[i+1]; k++ {
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

// multiplyVector makes w the product of the matrix and v. Four sums at once keep the
// processor from waiting for each addition.
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
