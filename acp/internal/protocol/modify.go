package protocol

import "fmt"

// AtomicOp is what an atomic operation does with the value that it finds.
type AtomicOp uint8

// The operations of ACP.
const (
	CompareSwap AtomicOp = iota // if it is Compare then it becomes Operand
	Swap                        // it becomes Operand
	Add
	Xor
	Or
	And
)

// String is the name of ACP's function without the width.
func (o AtomicOp) String() string {
	names := [...]string{"cas", "swap", "add", "xor", "or", "and"}
	if int(o) >= len(names) {
		return fmt.Sprintf("AtomicOp(%d)", uint8(o))
	}
	return names[o]
}

// Modify is an atomic operation of 4 or 8 bytes, made of what an adapter has:
// compare-and-swap and fetch-and-add of aligned words of 8 bytes. All operations are
// done on the word that contains the value, by the adapter that owns the memory, so all are
// atomic with each other, whatever their width.
//
// It is a loop in steps: do what Next says, and tell Found the word that was there, until it is
// done. A first round guesses what the word is, 0 unless Guess says otherwise. Each further round knows better, and fails only
// if somebody else has changed the word meanwhile: of those who contend one gets on.
type Modify struct {
	Op               AtomicOp
	Operand, Compare uint64 // in the low 4 bytes, if it has no more

	shift uint8 // of the value in its word
	half  bool  // 4 bytes
	guess uint64
}

// SetWidth4 makes the operation one of 4 bytes: those of the word that begin at byte 0 or 4,
// at ranks whose byte order is little or big endian.
func (m *Modify) SetWidth4(at uint64, bigEndian bool) {
	m.half = true
	if at&4 != 0 != bigEndian {
		m.shift = 32
	}
}

// IsNative reports whether the adapter does the operation in one go, as a fetch-and-add of
// Operand.
func (m *Modify) IsNative() bool { return m.Op == Add && !m.half }

// SetGuess tells what the word is likely to be, before the first round.
func (m *Modify) SetGuess(word uint64) { m.guess = word }

// NextSwap is the compare-and-swap to try.
func (m *Modify) NextSwap() (compare, swap uint64) {
	if m.Op == CompareSwap && !m.half {
		return m.Compare, m.Operand
	}
	return m.guess, m.ApplyTo(m.guess)
}

// HandleResult takes the word that the compare-and-swap has found, and reports whether the operation is
// done. It is done, too, when the word needs no change: it was read atomically.
func (m *Modify) HandleResult(word uint64) (done bool) {
	compare, _ := m.NextSwap()
	m.guess = word
	return word == compare || m.Op == CompareSwap && !m.half || m.ApplyTo(word) == word
}

// OldValue is the value in a word: what the operation returns.
func (m *Modify) OldValue(word uint64) uint64 {
	if m.half {
		return uint64(uint32(word >> m.shift))
	}
	return word
}

// ApplyTo is what becomes of a word.
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
