package datatype_test

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// TestOpTable checks the table of MPI 4.1, section 6.9.2: the kinds of elements of each operation.
func TestOpTable(t *testing.T) {
	classes := map[string][]datatype.Kind{
		"integer": {datatype.Int8, datatype.Int16, datatype.Int32, datatype.Int64, datatype.Uint8, datatype.Uint16, datatype.Uint32, datatype.Uint64},
		"float":   {datatype.Float32, datatype.Float64},
		"complex": {datatype.Complex64, datatype.Complex128},
		"bool":    {datatype.Bool},
		"byte":    {datatype.Byte},
		"pair":    {datatype.PairInt16, datatype.PairInt32, datatype.PairInt64, datatype.PairFloat32, datatype.PairFloat64},
		"struct":  {datatype.Struct},
	}
	allowed := map[string]string{
		"max": "integer float", "min": "integer float", "sum": "integer float complex", "product": "integer float complex",
		"land": "integer bool", "lor": "integer bool", "lxor": "integer bool",
		"band": "integer byte", "bor": "integer byte", "bxor": "integer byte", "maxloc": "pair", "minloc": "pair",
		"replace": "integer float complex bool byte pair struct", "no-op": "integer float complex bool byte pair struct",
	}
	require.Len(t, datatype.Ops(), len(allowed))
	for _, op := range datatype.Ops() {
		require.Contains(t, allowed, op.String())
		require.Equal(t, op.String() != "replace" && op.String() != "no-op", op.Commutative(), op)
		for class, kinds := range classes {
			for _, k := range kinds {
				err := op.Valid(k)
				require.Equal(t, slices.Contains(strings.Fields(allowed[op.String()]), class), err == nil, "%v of %v", op, k)
				if err != nil {
					require.ErrorIs(t, err, datatype.ErrOp)
					require.ErrorContains(t, err, op.String()+" of "+k.String()+" is undefined, want ")
					require.Equal(t, err, op.Apply(k, make([]byte, 16), make([]byte, 16)))
				}
			}
		}
	}
	require.ErrorContains(t, datatype.Sum.Valid(datatype.Byte), "a []byte of numbers is mpi.Of")
	require.ErrorContains(t, datatype.Op{}.Valid(datatype.Int8), "zero Op")
	require.Equal(t, "no operation", datatype.Op{}.String())
	require.ErrorIs(t, datatype.Sum.Valid(99), datatype.ErrOp)
	require.ErrorContains(t, datatype.Sum.Apply(datatype.Int32, make([]byte, 8), make([]byte, 4)), "sum: operands of 4 and 8 bytes, elements of 4")
	require.ErrorContains(t, datatype.Sum.Apply(datatype.Int32, make([]byte, 6), make([]byte, 6)), "elements of 4")
}

type real interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// check compares an operation on vectors with the operation on single elements.
func check[T datatype.Element](t *testing.T, gen *rapid.Generator[T], model map[string]func(in, inout T) T) {
	for _, op := range datatype.Ops() {
		f, ok := model[op.String()]
		if !ok {
			continue
		}
		t.Run(reflect.TypeFor[T]().Name()+"/"+op.String(), rapid.MakeCheck(func(t *rapid.T) {
			n := rapid.IntRange(0, 9).Draw(t, "n") * rapid.SampledFrom([]int{1, 1, 1, 97}).Draw(t, "times")
			in, inout := make([]T, n), make([]T, n)
			for i := range n { // a few values, repeated
				if i < 8 {
					in[i], inout[i] = gen.Draw(t, "in"), gen.Draw(t, "inout")
				} else {
					in[i], inout[i] = in[i-8], inout[i-7]
				}
			}
			want := make([]T, n)
			for i := range want {
				want[i] = f(in[i], inout[i])
			}
			b := datatype.Of(inout)
			x := placed(t, datatype.Of(in))
			y := placed(t, b)
			require.NoError(t, op.Apply(b.Kind(), y, x))
			b.Unpack(y)
			for i := range want {
				if bothNaN := want[i] != want[i] && inout[i] != inout[i]; !bothNaN && want[i] != inout[i] {
					t.Fatalf("element %d: %v %v something is %v, not %v", i, in[i], op, want[i], inout[i])
				}
			}
			before := make([]byte, len(x))
			datatype.Of(in).Pack(before)
			require.Equal(t, string(before), string(x), "in was changed")
		}))
	}
}

// placed returns a packed message at an aligned or unaligned address.
func placed(t *rapid.T, b datatype.Buffer) []byte {
	off := rapid.IntRange(0, 8).Draw(t, "alignment")
	wire := make([]byte, off+b.Size())[off:]
	b.Pack(wire)
	return wire
}

func realModel[T real]() map[string]func(in, inout T) T {
	truth := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	m := map[string]func(in, inout T) T{
		"sum":     func(a, b T) T { return a + b },
		"product": func(a, b T) T { return a * b },
		"max":     func(a, b T) T { return max(a, b) },
		"min":     func(a, b T) T { return min(a, b) },
		"replace": func(a, _ T) T { return a },
		"no-op":   func(_, b T) T { return b },
	}
	if T(1)/2 == 0 {
		m["land"] = func(a, b T) T { return truth(a != 0 && b != 0) }
		m["lor"] = func(a, b T) T { return truth(a != 0 || b != 0) }
		m["lxor"] = func(a, b T) T { return truth((a != 0) != (b != 0)) }
		m["band"] = func(a, b T) T { return T(int64(a) & int64(b)) }
		m["bor"] = func(a, b T) T { return T(int64(a) | int64(b)) }
		m["bxor"] = func(a, b T) T { return T(int64(a) ^ int64(b)) }
	}
	return m
}

func TestOps(t *testing.T) {
	check(t, rapid.Int8Range(-3, 3), realModel[int8]())
	check(t, rapid.Int16(), realModel[int16]())
	check(t, rapid.Int32(), realModel[int32]())
	check(t, rapid.Int64Range(-2, 1<<40), realModel[int64]())
	check(t, rapid.Uint8(), realModel[uint8]())
	check(t, rapid.Uint16Range(0, 2), realModel[uint16]())
	check(t, rapid.Uint32(), realModel[uint32]())
	check(t, rapid.Uint64(), realModel[uint64]())
	floats := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1}))
	check(t, floats, realModel[float64]())
	check(t, rapid.Map(floats, func(f float64) float32 { return float32(f) }), realModel[float32]())
	ints := rapid.IntRange(-9, 9)
	check(t, rapid.Custom(func(t *rapid.T) complex128 {
		return complex(float64(ints.Draw(t, "re")), float64(ints.Draw(t, "im")))
	}), map[string]func(in, inout complex128) complex128{
		"sum":     func(a, b complex128) complex128 { return a + b },
		"product": func(a, b complex128) complex128 { return a * b },
	})
	check(t, rapid.Custom(func(t *rapid.T) complex64 {
		return complex(float32(ints.Draw(t, "re")), float32(ints.Draw(t, "im")))
	}), map[string]func(in, inout complex64) complex64{
		"sum":     func(a, b complex64) complex64 { return a + b },
		"product": func(a, b complex64) complex64 { return a * b },
	})
}

func TestBools(t *testing.T) {
	for i := range 4 {
		a, b := i&1 != 0, i&2 != 0
		for _, c := range []struct {
			op   datatype.Op
			want bool
		}{{datatype.LAnd, a && b}, {datatype.LOr, a || b}, {datatype.LXor, a != b}} {
			in, _ := datatype.Bools([]bool{a}).Contiguous()
			got := []bool{b}
			inout, _ := datatype.Bools(got).Contiguous()
			require.NoError(t, c.op.Apply(datatype.Bool, inout, in))
			require.Equal(t, c.want, got[0], "%v %v %v", a, c.op, b)
		}
	}
}

// MaxLoc and MinLoc return the first index of the value, in any order of operands, also with NaNs.
func locations[V float32 | float64 | int16 | int32 | int64](t *testing.T, values ...V) {
	rank := func(v V) int { // indices in the order of values, NaNs first
		if v != v {
			return -1
		}
		return slices.IndexFunc(values, func(w V) bool { return v == w })
	}
	t.Run(reflect.TypeFor[V]().Name(), rapid.MakeCheck(func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) datatype.Pair[V] {
			return datatype.Pair[V]{Value: rapid.SampledFrom(values).Draw(t, "value"), Index: rapid.Int64Range(-3, 3).Draw(t, "index")}
		}), 1, 6).Draw(t, "pairs")
		for _, op := range []datatype.Op{datatype.MaxLoc, datatype.MinLoc} {
			best := slices.MinFunc(all, func(p, q datatype.Pair[V]) int {
				byValue := cmp.Compare(rank(p.Value), rank(q.Value))
				if op.String() == "maxloc" && rank(p.Value) >= 0 && rank(q.Value) >= 0 {
					byValue = -byValue
				}
				return cmp.Or(byValue, cmp.Compare(p.Index, q.Index))
			})
			got := []datatype.Pair[V]{all[0]}
			b := datatype.Pairs(got)
			inout := placed(t, b)
			for i := range all[1:] {
				require.NoError(t, op.Apply(b.Kind(), inout, placed(t, datatype.Pairs(all[1+i:][:1]))))
			}
			b.Unpack(inout)
			require.Equal(t, rank(best.Value), rank(got[0].Value))
			require.Equal(t, best.Index, got[0].Index)
		}
	}))
}

func TestLocations(t *testing.T) {
	locations[int16](t, -5, 0, 7)
	locations[int32](t, -5, 0, 7)
	locations[int64](t, math.MinInt64, 0, 7)
	locations(t, float32(math.Inf(-1)), 0, 2, float32(math.NaN()))
	locations(t, math.Inf(-1), -1, 3.5, math.NaN())
}

// TestOpFunc checks that a user-defined function gets the operands in order, and only its own type.
func TestOpFunc(t *testing.T) {
	type celsius float64
	minus := datatype.OpFunc("minus", false, func(in, inout []celsius) {
		for i := range inout {
			inout[i] = in[i] - inout[i]
		}
	})
	require.Equal(t, "minus", minus.String())
	require.False(t, minus.Commutative())
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 600).Draw(t, "n")
		a, b := make([]celsius, n), make([]celsius, n)
		for i := range n {
			a[i], b[i] = celsius(i), celsius(3*i)
		}
		in, inout := placed(t, datatype.Of(a)), placed(t, datatype.Of(b))
		require.NoError(t, minus.Apply(datatype.Float64, inout, in))
		datatype.Of(b).Unpack(inout)
		for i := range n {
			require.Equal(t, celsius(-2*i), b[i])
		}
	})
	err := minus.Apply(datatype.Float32, nil, nil)
	require.ErrorIs(t, err, datatype.ErrOp)
	require.ErrorContains(t, err, "minus: function of float64 applied to float32")
	bytesToo := datatype.OpFunc("first", true, func(_, _ []uint8) {})
	require.NoError(t, bytesToo.Valid(datatype.Byte))
}

// TestOpStructs combines structs with padding and without.
func TestOpStructs(t *testing.T) {
	add := datatype.OpStructs("add", true, func(in, inout []inner) {
		for i := range inout {
			inout[i].A += in[i].A
			inout[i].B -= in[i].B
		}
	})
	type matrix [4]uint32
	mul := datatype.OpStructs("mul", false, func(in, inout []matrix) {
		for i, b := range inout {
			a := in[i]
			inout[i] = matrix{a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3], a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3]}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 600).Draw(t, "n")
		a, b := make([]inner, n), make([]inner, n)
		for i := range n {
			a[i], b[i] = inner{uint16(i), uint64(i)}, inner{3, uint64(10 * i)}
		}
		in, inout := placed(t, datatype.Structs(a)), placed(t, datatype.Structs(b))
		require.NoError(t, add.Apply(datatype.Struct, inout, in))
		datatype.Structs(b).Unpack(inout)
		for i := range n {
			require.Equal(t, inner{uint16(i + 3), uint64(9 * i)}, b[i])
		}
		x, y := []matrix{{1, 2, 3, 4}}, []matrix{{0, 1, 1, 0}}
		in, inout = placed(t, datatype.Structs(x)), placed(t, datatype.Structs(y))
		require.NoError(t, mul.Apply(datatype.Struct, inout, in))
		datatype.Structs(y).Unpack(inout)
		require.Equal(t, matrix{2, 1, 4, 3}, y[0])
	})
	require.ErrorContains(t, add.Apply(datatype.Struct, make([]byte, 11), make([]byte, 11)), "elements of 10")
	bad := datatype.OpStructs("bad", true, func(_, _ []string) {})
	require.ErrorIs(t, bad.Valid(datatype.Struct), datatype.ErrOp)
	require.ErrorIs(t, bad.Valid(datatype.Struct), datatype.ErrLayout)
	none := datatype.OpStructs("none", true, func(_, _ []struct{}) {})
	require.NoError(t, none.Apply(datatype.Struct, nil, nil))
}

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
