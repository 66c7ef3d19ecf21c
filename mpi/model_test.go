package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/softrnic/softrnic/mpi"
)

// The models compute the result of a collective call: every rank computes the data of all others
// from their numbers.

// elementOf returns element i of rank r.
func elementOf(r, i int) int64 { return int64((r+3)*(i+5)%1009 - 400) }

// vector returns n elements of rank r, from element from on.
func vector(r, from, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = elementOf(r, from+i)
	}
	return v
}

// sum returns the sum of the vectors of ranks from until to.
func sum(from, to, first, n int) []int64 {
	v := make([]int64, n)
	for r := from; r < to; r++ {
		for i := range v {
			v[i] += elementOf(r, first+i)
		}
	}
	return v
}

// layOutBlocks returns lengths and offsets of the blocks of n ranks, the same at all ranks, in
// another order than that of the ranks and with gaps.
func layOutBlocks(n, most int, seed uint64) (counts, displs []int, total int) {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	counts, displs = make([]int, n), make([]int, n)
	for _, r := range rng.Perm(n) {
		total += rng.IntN(2)
		counts[r], displs[r] = rng.IntN(most+1), total
		total += counts[r]
	}
	return counts, displs, total
}

// memory is a vector in memory, contiguous or with gaps.
type memory struct {
	all     []int64
	strided bool
	n       int
}

func newMemory(v []int64, strided bool) *memory {
	m := &memory{strided: strided, n: len(v), all: make([]int64, 2*len(v)+1)}
	for i := range m.all {
		m.all[i] = -77
	}
	for i, x := range v {
		m.all[m.indexOf(i)] = x
	}
	return m
}

func (m *memory) indexOf(i int) int {
	if m.strided {
		return 2 * i
	}
	return i
}

func (m *memory) buffer() mpi.Buffer {
	if m.strided {
		return mpi.Strided(m.all, m.n, 1, 2)
	}
	return mpi.Of(m.all[:m.n])
}

// compare compares the memory, gaps included, with the expected elements.
func (m *memory) compare(what string, want []int64) error {
	w := newMemory(want, m.strided)
	if !reflect.DeepEqual(m.all, w.all) {
		return fmt.Errorf("%s: got %.200s, want %.200s", what, fmt.Sprint(m.all), fmt.Sprint(w.all))
	}
	return nil
}

// blankElements returns n elements with the value that marks memory without received data.
func blankElements(n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = -1
	}
	return v
}
