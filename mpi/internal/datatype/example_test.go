package datatype_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// A column of a matrix is sent, and received as a row.
func Example() {
	matrix := []float64{
		1, 2, 3,
		4, 5, 6,
	}
	column := datatype.Strided(matrix[1:], 2, 1, 3)
	row := make([]float64, 2)
	received := datatype.Of(row)
	fmt.Println(column.Describe())
	fmt.Println(received.Signature().Accept(column.Signature()))

	wire := make([]byte, column.Size())
	column.Pack(wire)
	received.Unpack(wire)
	fmt.Println(row)

	// Output:
	// 2 float64 (16 bytes in pieces of 8, 24 apart)
	// <nil>
	// [2 5]
}

func ExampleStructs() {
	type particle struct {
		ID    int8 // seven bytes of padding follow
		X, Y  float64
		Links []int
	}
	fmt.Println(datatype.Structs(make([]particle, 10)).Err())
	b := datatype.Structs(make([]particle, 10), "ID", "X", "Y")
	fmt.Println(b.Err(), b.Size())
	// Output:
	// mpi: invalid buffer: field Links of datatype_test.particle: type []int has pointers; send the memory they point to, or name the fields to send
	// <nil> 170
}

func ExampleOp_Apply() {
	mine, theirs := []int32{1, 2, 3}, []int32{10, 20, 30}
	inout, _ := datatype.Of(mine).Contiguous()
	in, _ := datatype.Of(theirs).Contiguous()
	fmt.Println(datatype.Sum.Apply(datatype.Int32, inout, in), mine)
	fmt.Println(datatype.MaxLoc.Apply(datatype.Int32, inout, in))
	// Output:
	// <nil> [11 22 33]
	// mpi: invalid reduction operation: maxloc of int32 is undefined, want Pair
}

func ExampleOpFunc() {
	// Strings of decimal digits, the lower rank's on the left.
	type digits uint64
	concat := datatype.OpFunc("concatenate", false, func(in, inout []digits) {
		for i := range inout {
			shift := digits(10)
			for shift <= inout[i] {
				shift *= 10
			}
			inout[i] += in[i] * shift
		}
	})
	left, right := []digits{12}, []digits{345}
	in, _ := datatype.Of(left).Contiguous()
	inout, _ := datatype.Of(right).Contiguous()
	fmt.Println(concat.Apply(datatype.Uint64, inout, in), right[0])
	// Output:
	// <nil> 12345
}
