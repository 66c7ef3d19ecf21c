package datatype_test

import (
	"math"
	"testing"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// TestMisuse calls every exported function and method with arguments out of range.
func TestMisuse(t *testing.T) {
	type pair struct{ A, B int32 }
	bad := datatype.Indexed([]int64{1}, []datatype.Block{{At: 5, Len: 1}})
	live := func(v any) func() any { return func() any { return v } }
	s := &misuse.Surface{
		Dir: ".",
		Funcs: map[string]any{
			"Bools":           datatype.Bools,
			"Bytes":           datatype.Bytes,
			"DescribeMessage": datatype.DescribeMessage,
			"MessagesMatch":   datatype.MessagesMatch,
			"Indexed":         datatype.Indexed[int64, datatype.Block],
			"KindOf":          datatype.KindOf[int64],
			"Of":              datatype.Of[int64],
			"OpFunc":          datatype.OpFunc[int64],
			"OpOf":            datatype.OpOf,
			"OpStructs":       datatype.OpStructs[pair],
			"Ops":             datatype.Ops,
			"Pairs":           datatype.Pairs[int64, datatype.Pair[int64]],
			"Raw":             datatype.Raw[int64],
			"Strided":         datatype.Strided[int64],
			"Structs":         datatype.Structs[pair],
			"Value":           datatype.Value[int64],
		},
		Types: map[string][]misuse.Receiver{
			"Buffer": {
				{Name: "live", Make: live(datatype.Of([]int64{1, 2})), Usable: true},
				{Name: "zero", Make: live(datatype.Buffer{}), Usable: true},
				{Name: "bad", Make: live(bad), Usable: true},
				{Name: "strided", Make: live(datatype.Strided([]int64{1, 2, 3}, 2, 1, 2)), Usable: true},
				{Name: "structs", Make: live(datatype.Structs([]pair{{}})), Usable: true},
			},
			"Kind": {{Name: "unknown", Make: live(datatype.Kind(200)), Usable: true}},
			"Op": {
				{Name: "live", Make: live(datatype.Sum), Usable: true},
				{Name: "zero", Make: live(datatype.Op{}), Usable: true},
				{Name: "of nil", Make: live(datatype.OpFunc[int64]("nil", true, nil)), Usable: true},
				{Name: "of structs", Make: live(datatype.OpStructs("structs", true, func(in, inout []pair) {})), Usable: true},
				{Name: "no-op", Make: live(datatype.NoOp), Usable: true},
			},
			"Signature": {{Name: "zero", Make: live(datatype.Signature{}), Usable: true}, {Name: "unknown", Make: live(datatype.Signature{Kind: 200, Count: -7}), Usable: true}},
		},
		Values: []any{bad, datatype.Kind(200), datatype.Block{At: -7, Len: 1}, datatype.Block{At: 0, Len: -7}, datatype.Block{At: math.MaxInt/2 + 1, Len: math.MaxInt/2 + 1}, datatype.Signature{Kind: 200, Unit: 1 << 31, Count: -7}},
	}
	s.Check(t)
}
