package rma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/datatype"
)

// Memory is that of a window at its own rank. One call at a time.
type Memory struct {
	Bytes []byte

	operand [8]byte // an operand
	buffer  []byte  // elements that do not lie in one piece
}

// ErrKind is an atomic operation on elements of a kind that it is not for.
var ErrKind = errors.New("elements of a kind that this cannot be done with")

// Accumulate makes each element of a target the combination of itself and the one
// that came (MPI 4.1, 12.3.4), and copies what was there before to old, unless that
// is nil. Check has seen the target; data and old have its length.
func (m *Memory) Accumulate(t *Target, op datatype.Op, kind datatype.Kind, data, old []byte) error {
	if t == nil {
		return fmt.Errorf("%w: no target", ErrMalformed)
	}
	if t.Element.Size != kind.Size() || len(data) != t.Bytes() {
		return fmt.Errorf("%w: %d bytes for %d elements of %d, which are %v", ErrMalformed, len(data), t.Elements(), t.Element.Size, kind)
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
			_ = op.Apply(kind, piece, data[:len(piece)]) // which is valid
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

// isDense reports whether the elements have no gaps in them.
func (t *Target) isDense() bool { return t.Element.isDense() }

// What the processor has operations for.
var (
	sum, _     = datatype.Sum.Code()
	replace, _ = datatype.Replace.Code()
	noOp, _    = datatype.NoOp.Code()
)

// accumulateWords is Accumulate of integers of 8 bytes.
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

// combineWord is an operation that the processor does not have.
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

// asWord is memory that the processor has atomic operations for.
func asWord(b []byte) (*uint64, bool) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < 8 || uintptr(p)%8 != 0 {
		return nil, false
	}
	return (*uint64)(p), true
}

// CompareAndSwap makes one element of a target what came if it is equal to compare,
// and copies what was there before to old (MPI 4.1, 12.3.4.3).
func (m *Memory) CompareAndSwap(t *Target, kind datatype.Kind, data, compare, old []byte) error {
	if err := CheckSwap(kind); err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("%w: no target", ErrMalformed)
	}
	off, n, ok := t.Contiguous()
	if !ok || n != kind.Size() || len(data) != n || len(compare) != n || len(old) != n {
		return fmt.Errorf("%w: compare %d bytes and swap %d, %v at %d bytes", ErrMalformed, len(compare), len(data), kind, n)
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

// CheckSwap is nil if CompareAndSwap is for elements of a kind: integers, truth
// values and bytes.
func CheckSwap(k datatype.Kind) error {
	switch k {
	case datatype.Float32, datatype.Float64, datatype.Complex64, datatype.Complex128, datatype.Struct:
	default:
		if s := k.Size(); s == 1 || s == 2 || s == 4 || s == 8 {
			return nil
		}
	}
	return fmt.Errorf("%w: compare and swap of %v, there is only that of integers, bool and bytes", ErrKind, k)
}

// IsAtomicWord reports whether elements of a kind at an address are combined by atomic
// operations of the processor, or of an adapter.
func IsAtomicWord(kind datatype.Kind, addr uint64) bool {
	return (kind == datatype.Int64 || kind == datatype.Uint64) && addr%8 == 0
}
