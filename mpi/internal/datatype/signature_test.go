package datatype_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

type (
	mixed struct {
		A int32
		B float64
	}
	around struct {
		A int32
		B float64
		C int32
	}
	uneven struct {
		A, B int32
		C    float64
	}
)

// TestSignatureOfRepeatedStructs checks that equal sequences of elements have equal signatures,
// however they are divided into structs, and that others differ.
func TestSignatureOfRepeatedStructs(t *testing.T) {
	type two struct{ A, B mixed }
	type backwards struct {
		B float64
		A int32
	}
	type floats struct {
		A [2]float64
		B float64
	}
	for name, same := range map[string][]datatype.Buffer{
		"pairs":    {datatype.Structs(make([]mixed, 6)), datatype.Structs(make([][2]mixed, 3)), datatype.Structs(make([][6]mixed, 1)), datatype.Structs(make([]two, 3))},
		"merged":   {datatype.Structs(make([]around, 6)), datatype.Structs(make([][2]around, 3)), datatype.Structs(make([][3]around, 2))},
		"runs":     {datatype.Structs(make([]uneven, 4)), datatype.Structs(make([][2]uneven, 2))},
		"one kind": {datatype.Structs(make([]floats, 2)), datatype.Of(make([]float64, 6))},
	} {
		for _, b := range same {
			require.Equal(t, same[0].Signature(), b.Signature(), name)
		}
	}
	all := []datatype.Buffer{datatype.Structs(make([]mixed, 6)), datatype.Structs(make([]around, 6)), datatype.Structs(make([]uneven, 6)), datatype.Structs(make([]backwards, 6))}
	for i, a := range all {
		for _, b := range all[:i] {
			require.NotEqual(t, a.Signature().Unit, b.Signature().Unit)
		}
	}
}
