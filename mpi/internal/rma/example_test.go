package rma_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// A rank adds to a column of a matrix in the window of another rank.
func Example() {
	matrix := []int64{
		0, 1, 2,
		3, 4, 5,
		6, 7, 8,
	}
	memory, kind, _ := datatype.Raw(matrix)

	// The origin, which knows the size and the unit of the window.
	place := rma.At(1).Strided(3, 1, 3)
	fmt.Println(place.Validate(3, 8, 8, len(memory)))
	vectors, n := place.AppendVectors(new(rma.Cursor), make([]rma.Vector, 0, 4), 3, 8, 8)
	request := rma.Target{Element: rma.DenseElement(8), Vectors: vectors}
	ten, _, _ := datatype.Raw([]int64{10, 10, 10})
	packet := append(request.Append(nil), ten...)
	fmt.Println(n, "elements in", len(packet), "bytes")

	// The target.
	var t rma.Target
	data, err := t.Decode(packet)
	if err == nil {
		err = t.Validate(len(memory), len(data))
	}
	if err == nil {
		m := rma.Memory{Bytes: memory}
		err = m.Accumulate(&t, datatype.Sum, kind, data, nil)
	}
	fmt.Println(err, matrix)
	// Output:
	// <nil>
	// 3 elements in 60 bytes
	// <nil> [0 11 2 3 14 5 6 17 8]
}
