package datatype_test

import (
	"testing"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

func BenchmarkSum(b *testing.B) {
	in, inout := make([]byte, 64<<10), make([]byte, 64<<10)
	for _, k := range []datatype.Kind{datatype.Uint8, datatype.Float32, datatype.Float64} {
		b.Run(k.String(), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				_ = datatype.Sum.Apply(k, inout, in)
			}
		})
	}
}

func BenchmarkPackColumn(b *testing.B) {
	m := make([]float64, 1024*64)
	column := datatype.Strided(m, 1024, 1, 64)
	wire := make([]byte, column.Size())
	b.SetBytes(int64(len(wire)))
	for b.Loop() {
		column.Pack(wire)
	}
}
