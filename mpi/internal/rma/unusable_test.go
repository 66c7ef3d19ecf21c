package rma_test

import (
	"testing"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

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
