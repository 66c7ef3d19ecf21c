package datatype_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

type inner struct {
	A uint16
	B uint64
}

type particle struct {
	ID     int8
	Pos    [3]float64
	Charge int16
	Alive  bool
	Spin   complex64
	Inner  [2]inner
	Last   uint8
}

// TestStructsAsEncodingBinary checks that the packed form of a struct is that of encoding/binary,
// for all fields or some.
func TestStructsAsEncodingBinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) particle {
			return particle{
				ID: rapid.Int8().Draw(t, "id"), Pos: [3]float64{rapid.Float64().Draw(t, "x"), 2, 3},
				Charge: rapid.Int16().Draw(t, "charge"), Alive: rapid.Bool().Draw(t, "alive"), Spin: complex(1, 2),
				Inner: [2]inner{{1, rapid.Uint64().Draw(t, "b")}, {3, 4}}, Last: rapid.Uint8().Draw(t, "last"),
			}
		}), 0, 5).Draw(t, "s")
		var want bytes.Buffer
		require.NoError(t, binary.Write(&want, binary.NativeEndian, s))

		b := datatype.Structs(s)
		require.NoError(t, b.RecvErr())
		require.Equal(t, want.Len(), b.Size())
		wire := make([]byte, b.Size())
		require.Equal(t, len(wire), b.Pack(wire))
		require.Equal(t, want.String(), string(wire))

		again := make([]particle, len(s))
		require.Equal(t, len(wire), datatype.Structs(again).Unpack(wire))
		require.Equal(t, s, again)
		if len(s) > 1 {
			one := make([]byte, b.ElementSize())
			require.Equal(t, len(one), b.Slice(1, 2).Pack(one))
			require.Equal(t, wire[len(one):][:len(one)], one)
		}
	})
}

// TestStructsFields checks that fields that are not selected do not change, and that padding with a
// name does not either.
func TestStructsFields(t *testing.T) {
	s := []particle{{ID: 1, Charge: 2, Last: 3}, {ID: 4, Charge: 5, Last: 6}}
	b := datatype.Structs(s, "Last", "Charge")
	require.Equal(t, 3, b.ElementSize())
	wire := make([]byte, b.Size())
	b.Pack(wire)
	var want bytes.Buffer
	for _, p := range s {
		_ = binary.Write(&want, binary.NativeEndian, p.Charge) // in order of declaration
		want.WriteByte(p.Last)
	}
	require.Equal(t, want.Bytes(), wire)
	r := []particle{{ID: 9}, {ID: 8}}
	datatype.Structs(r, "Charge", "Last").Unpack(wire)
	require.Equal(t, []particle{{ID: 9, Charge: 2, Last: 3}, {ID: 8, Charge: 5, Last: 6}}, r)
	require.Equal(t, fmt.Sprintf("2 datatype_test.particle{Last, Charge} (6 bytes, 3 of each %d)", unsafe.Sizeof(s[0])), b.Describe())

	type padded struct {
		A byte
		_ [7]byte
		B uint64
	}
	require.Equal(t, 9, datatype.Structs([]padded{{}}).Size())
}

// TestStructsContiguous checks that structs without padding are sent without copying.
func TestStructsContiguous(t *testing.T) {
	s := []struct{ X, Y float64 }{{1, 2}, {3, 4}, {5, 6}}
	b := datatype.Structs(s)
	mem, ok := b.Slice(1, 3).Contiguous()
	require.True(t, ok)
	require.Len(t, mem, 32)
	mem[0] ^= 1
	require.NotEqual(t, 3.0, s[1].X, "no copy")
	_, ok = datatype.Structs([]particle{{}}).Contiguous()
	require.False(t, ok)
}

// TestPairs checks that the packed form of pairs has no padding.
func TestPairs(t *testing.T) {
	check := func(b datatype.Buffer, kind datatype.Kind, value ...byte) {
		t.Helper()
		require.Equal(t, kind, b.Kind())
		wire := make([]byte, b.Size())
		b.Pack(wire)
		require.Equal(t, binary.NativeEndian.AppendUint64(value, 7), wire)
	}
	le := binary.NativeEndian
	check(datatype.Pairs([]datatype.Pair[int16]{{1, 7}}), datatype.PairInt16, le.AppendUint16(nil, 1)...)
	check(datatype.Pairs([]datatype.Pair[int32]{{1, 7}}), datatype.PairInt32, le.AppendUint32(nil, 1)...)
	check(datatype.Pairs([]datatype.Pair[int64]{{1, 7}}), datatype.PairInt64, le.AppendUint64(nil, 1)...)
	check(datatype.Pairs([]datatype.Pair[float32]{{1, 7}}), datatype.PairFloat32, le.AppendUint32(nil, 0x3f800000)...)
	check(datatype.Pairs([]datatype.Pair[float64]{{1, 7}}), datatype.PairFloat64, le.AppendUint64(nil, 0x3ff0000000000000)...)
	back := make([]datatype.Pair[float32], 1)
	datatype.Pairs(back).Unpack(le.AppendUint64(le.AppendUint32(nil, 0x40000000), 9))
	require.Equal(t, []datatype.Pair[float32]{{2, 9}}, back)
}

// TestKinds checks that named types have the kind of their underlying type.
func TestKinds(t *testing.T) {
	type celsius float32
	type id uint8
	require.Equal(t, datatype.Float32, datatype.KindOf[celsius]())
	require.Equal(t, datatype.Uint8, datatype.KindOf[id]())
	require.Equal(t, datatype.Complex128, datatype.KindOf[complex128]())
	var n int
	require.Equal(t, datatype.Value(&n).Size(), datatype.KindOf[int]().Size())
	require.Contains(t, []datatype.Kind{datatype.Int32, datatype.Int64}, datatype.KindOf[int]())
	require.Contains(t, []datatype.Kind{datatype.Uint32, datatype.Uint64}, datatype.KindOf[uint]())
	require.Equal(t, datatype.Bool, datatype.Bools([]bool{true}).Kind())
	require.Equal(t, "float64-index", datatype.PairFloat64.String())
	require.Equal(t, "Kind(99)", datatype.Kind(99).String())
	require.Zero(t, datatype.Kind(99).Size())
}

// TestSignature compares signatures of sent and expected messages.
func TestSignature(t *testing.T) {
	accept := func(recv, sent datatype.Buffer) error { return recv.Signature().Accept(sent.Signature()) }
	x := make([]float64, 10)
	require.NoError(t, accept(datatype.Of(x), datatype.Strided(x, 3, 1, 4)))
	require.NoError(t, accept(datatype.Of(x), datatype.Structs(make([][3]float64, 3))))
	require.NoError(t, accept(datatype.Structs(make([]struct{ X, Y float64 }, 5)), datatype.Of(x)))
	require.NoError(t, accept(datatype.Bytes(make([]byte, 3)), datatype.Of([]uint8{1})))
	require.NoError(t, accept(datatype.Of(x), datatype.Of([]int{})), "nothing is of any kind")

	err := accept(datatype.Of(x), datatype.Of(make([]int32, 4)))
	require.ErrorIs(t, err, datatype.ErrSignature)
	require.ErrorContains(t, err, "message of 4 int32, buffer of 10 float64")
	require.ErrorContains(t, accept(datatype.Of(x), datatype.Of(make([]float64, 11))), "message of 11 float64, buffer of 10")
	require.ErrorContains(t, accept(datatype.Structs(make([]inner, 2)), datatype.Structs(make([]particle, 1))), "other fields")
	type sameAsInner struct {
		C uint16
		D uint64
	}
	require.NoError(t, accept(datatype.Structs(make([]inner, 2)), datatype.Structs(make([]sameAsInner, 2))))
	require.ErrorContains(t, accept(datatype.Structs(make([]inner, 2)), datatype.Structs(make([]inner, 3))), "message of 3 struct, buffer of 2")
	require.Zero(t, datatype.Structs(make([]struct{}, 2)).Signature())
	long := datatype.Structs(make([]struct {
		A [300]int16
		B int8
	}, 1))
	require.Error(t, accept(long, datatype.Structs(make([]struct {
		A [301]int16
		B int8
	}, 1))))
}

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
