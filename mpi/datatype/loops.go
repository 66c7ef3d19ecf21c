package datatype

// loops has what the predefined operations do with each kind; nil where MPI's
// table (section 6.9.2) has no entry.
var loops = buildLoops()

type table [numCodes][numKinds]func(inout, in []byte)

func buildLoops() (t table) {
	integers[int8](&t, Int8)
	integers[int16](&t, Int16)
	integers[int32](&t, Int32)
	integers[int64](&t, Int64)
	integers[uint8](&t, Uint8)
	integers[uint16](&t, Uint16)
	integers[uint32](&t, Uint32)
	integers[uint64](&t, Uint64)
	ordered[float32](&t, Float32)
	ordered[float64](&t, Float64)
	numbers[complex64](&t, Complex64)
	numbers[complex128](&t, Complex128)
	bits[uint8](&t, Byte)
	logical[uint8](&t, Bool)
	located[int16](&t, PairInt16)
	located[int32](&t, PairInt32)
	located[int64](&t, PairInt64)
	located[float32](&t, PairFloat32)
	located[float64](&t, PairFloat64)
	return t
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type real interface {
	integer | float32 | float64
}

type number interface {
	real | complex64 | complex128
}

func integers[T integer](t *table, k Kind) {
	ordered[T](t, k)
	logical[T](t, k)
	bits[T](t, k)
}

func ordered[T real](t *table, k Kind) {
	numbers[T](t, k)
	t[maxOf][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = max(inout[i], in[i])
		}
	})
	t[minOf][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = min(inout[i], in[i])
		}
	})
}

func numbers[T number](t *table, k Kind) {
	t[sum][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] += in[i]
		}
	})
	t[prod][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] *= in[i]
		}
	})
}

func bits[T integer](t *table, k Kind) {
	t[bAnd][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] &= in[i]
		}
	})
	t[bOr][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] |= in[i]
		}
	})
	t[bXor][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] ^= in[i]
		}
	})
}

func logical[T integer](t *table, k Kind) {
	t[lAnd][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = truth[T](inout[i] != 0 && in[i] != 0)
		}
	})
	t[lOr][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = truth[T](inout[i] != 0 || in[i] != 0)
		}
	})
	t[lXor][k] = typed(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = truth[T]((inout[i] != 0) != (in[i] != 0))
		}
	})
}

func truth[T integer](b bool) T {
	if b {
		return 1
	}
	return 0
}
