package protocol

import "fmt"

// AtomicOp is the kind of an atomic operation.
type AtomicOp uint8

// The operations of ACP.
const (
	CompareSwap AtomicOp = iota // becomes Operand if it equals Compare
	Swap                        // becomes Operand
	Add
	Xor
	Or
	And
)

// String returns the name of ACP's function without the width.
func (o AtomicOp) String() string {
	names := [...]string{"cas", "swap", "add", "xor", "or", "and"}
	if int(o) >= len(names) {
		return fmt.Sprintf("AtomicOp(%d)", uint8(o))
	}
	return names[o]
}

// Modify is an atomic operation on 4 or 8 bytes, made of the adapter's compare-and-swap and fetch-and-add of
// aligned 8-byte words. All operations act on the word that contains the value, at the adapter that owns the
// memory, so all are atomic with each other, whatever their width.
//
// The caller loops: it executes the compare-and-swap of NextSwap and passes the previous word to
// HandleResult, until that reports true. The first iteration guesses the word, which is 0 unless SetGuess was
// called. Each further iteration fails only if the word has changed since the previous one, so one of several
// contenders always succeeds.
type Modify struct {
	Op               AtomicOp
	Operand, Compare uint64 // in the low 4 bytes after SetWidth4

	shift uint8 // of the value in its word
	half  bool  // 4 bytes
	guess uint64
}

// SetWidth4 makes the operation one of the 4 bytes at address at. Their position in the word depends on the
// byte order of the ranks.
func (m *Modify) SetWidth4(at uint64, bigEndian bool) {
	m.half = true
	if at&4 != 0 != bigEndian {
		m.shift = 32
	}
}

// IsNative reports whether the adapter executes the operation directly, as a fetch-and-add of Operand.
func (m *Modify) IsNative() bool { return m.Op == Add && !m.half }

// SetGuess sets the word expected by the first iteration.
func (m *Modify) SetGuess(word uint64) { m.guess = word }

// NextSwap returns the operands of the next compare-and-swap.
func (m *Modify) NextSwap() (compare, swap uint64) {
	if m.Op == CompareSwap && !m.half {
		return m.Compare, m.Operand
	}
	return m.guess, m.ApplyTo(m.guess)
}

// HandleResult handles the previous word returned by the compare-and-swap, and reports whether the operation
// is complete. It is also complete if the word need not change, because it was read atomically.
func (m *Modify) HandleResult(word uint64) (done bool) {
	compare, _ := m.NextSwap()
	m.guess = word
	return word == compare || m.Op == CompareSwap && !m.half || m.ApplyTo(word) == word
}

// OldValue returns the value in a word, which is the result of the operation.
func (m *Modify) OldValue(word uint64) uint64 {
	if m.half {
		return uint64(uint32(word >> m.shift))
	}
	return word
}

// ApplyTo returns the word after the operation.
func (m *Modify) ApplyTo(word uint64) uint64 {
	old := m.OldValue(word)
	value := old
	switch m.Op {
	case CompareSwap:
		compare := m.Compare
		if m.half {
			compare = uint64(uint32(compare))
		}
		if old == compare {
			value = m.Operand
		}
	case Swap:
		value = m.Operand
	case Add:
		value += m.Operand
	case Xor:
		value ^= m.Operand
	case Or:
		value |= m.Operand
	case And:
		value &= m.Operand
	}
	if !m.half {
		return value
	}
	return word&^(0xffffffff<<m.shift) | uint64(uint32(value))<<m.shift
}
