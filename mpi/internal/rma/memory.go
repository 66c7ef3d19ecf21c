package rma

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// Memory is the memory of a window at its own rank. It is not safe for concurrent use.
type Memory struct {
	Bytes []byte

	operand [8]byte // operand of combineWord
	buffer  []byte  // packed copy of elements with gaps
}

// Accumulate replaces each element of t by the combination of itself and the one in
// data (MPI 4.1, section 12.3.4), and copies the previous elements to old, unless old
// is nil. Validate has accepted t; data and old have its length.
func (m *Memory) Accumulate(t *Target, op datatype.Op, kind datatype.Kind, data, old []byte) error {
	if t == nil {
		return fmt.Errorf("%w: nil target", ErrMalformed)
	}
	if t.Element.Size != kind.Size() || len(data) != t.Bytes() {
		return fmt.Errorf("%w: accumulate: %d bytes of data for %d elements of %d bytes, kind %v", ErrMalformed, len(data), t.Elements(), t.Element.Size, kind)
	}
	if _, ok := op.Code(); !ok {
		return fmt.Errorf("%w: %v is not predefined", datatype.ErrOp, op)
	}
	if err := op.Valid(kind); err != nil {
		return err
	}
	switch {
	case t.isDense() && (kind == datatype.Int64 || kind == datatype.Uint64):
		m.accumulateWords(t, op, kind, data, old)
		return nil
	case t.isDense():
		t.eachPiece(m.Bytes, func(piece []byte) {
			if old != nil {
				old = old[copy(old, piece):]
			}
			_ = op.Apply(kind, piece, data[:len(piece)]) // op.Valid accepted it
			data = data[len(piece):]
		})
		return nil
	}
	m.buffer = append(m.buffer[:0], data...)
	t.Gather(m.buffer, m.Bytes)
	copy(old, m.buffer)
	err := op.Apply(kind, m.buffer, data)
	t.Scatter(m.Bytes, m.buffer)
	return err
}

// isDense reports whether the elements have no gaps.
func (t *Target) isDense() bool { return t.Element.isDense() }

// Operations with atomic instructions.
var (
	sum, _     = datatype.Sum.Code()
	replace, _ = datatype.Replace.Code()
	noOp, _    = datatype.NoOp.Code()
)

// accumulateWords is Accumulate of 8-byte integers.
func (m *Memory) accumulateWords(t *Target, op datatype.Op, kind datatype.Kind, data, old []byte) {
	code, _ := op.Code()
	ne := binary.NativeEndian
	t.eachPiece(m.Bytes, func(piece []byte) {
		for ; len(piece) > 0; piece, data = piece[8:], data[8:] {
			p, ok := asWord(piece)
			var was uint64
			switch {
			case !ok:
				was = ne.Uint64(piece)
				_ = op.Apply(kind, piece[:8], data[:8])
			case code == sum:
				operand := ne.Uint64(data)
				was = atomic.AddUint64(p, operand) - operand
			case code == replace:
				was = atomic.SwapUint64(p, ne.Uint64(data))
			case code == noOp:
				was = atomic.LoadUint64(p)
			default:
				was = m.combineWord(p, op, kind, data[:8])
			}
			if old != nil {
				ne.PutUint64(old, was)
				old = old[8:]
			}
		}
	})
}

// combineWord applies, by compare-and-swap, an operation without an atomic instruction.
func (m *Memory) combineWord(p *uint64, op datatype.Op, kind datatype.Kind, data []byte) uint64 {
	for {
		was := atomic.LoadUint64(p)
		binary.NativeEndian.PutUint64(m.operand[:], was)
		_ = op.Apply(kind, m.operand[:], data)
		if atomic.CompareAndSwapUint64(p, was, binary.NativeEndian.Uint64(m.operand[:])) {
			return was
		}
	}
}

// asWord returns b as a word for atomic operations, if it is aligned.
func asWord(b []byte) (*uint64, bool) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < 8 || uintptr(p)%8 != 0 {
		return nil, false
	}
	return (*uint64)(p), true
}

// CompareAndSwap replaces one element of t by data if it is equal to compare, and
// copies the previous element to old (MPI 4.1, section 12.3.4.3).
func (m *Memory) CompareAndSwap(t *Target, kind datatype.Kind, data, compare, old []byte) error {
	if err := CheckSwap(kind); err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("%w: nil target", ErrMalformed)
	}
	off, n, ok := t.Contiguous()
	if !ok || n != kind.Size() || len(data) != n || len(compare) != n || len(old) != n {
		return fmt.Errorf("%w: compare and swap: operands of %d and %d bytes, target %v of %d bytes", ErrMalformed, len(compare), len(data), kind, n)
	}
	mem := m.Bytes[off:][:n]
	if p, ok := asWord(mem); ok {
		ne := binary.NativeEndian
		want := ne.Uint64(compare)
		was := want
		for !atomic.CompareAndSwapUint64(p, want, ne.Uint64(data)) {
			if was = atomic.LoadUint64(p); was != want {
				break
			}
		}
		ne.PutUint64(old, was)
		return nil
	}
	copy(old, mem)
	if bytes.Equal(mem, compare) {
		copy(mem, data)
	}
	return nil
}

// CheckSwap returns nil if CompareAndSwap supports elements of a kind: integers,
// booleans and bytes.
func CheckSwap(k datatype.Kind) error {
	switch k {
	case datatype.Float32, datatype.Float64, datatype.Complex64, datatype.Complex128, datatype.Struct:
	default:
		if s := k.Size(); s == 1 || s == 2 || s == 4 || s == 8 {
			return nil
		}
	}
	return fmt.Errorf("%w: compare and swap of %v, want integers, bool or bytes", datatype.ErrSignature, k)
}

// IsAtomicWord reports whether elements of a kind at an address are combined by atomic
// operations of the processor or of an adapter.
func IsAtomicWord(kind datatype.Kind, addr uint64) bool {
	return (kind == datatype.Int64 || kind == datatype.Uint64) && addr%8 == 0
}
