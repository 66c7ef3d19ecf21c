package payload

import (
	"bytes"
	"fmt"
)

// A Pattern is payload: no byte of it is 0, which stands for memory that
// nothing has arrived in, and it does not repeat at the distance of any packet
// or message.
type Pattern []byte

// New returns the first n bytes of the pattern.
func New(n int) Pattern {
	p := make(Pattern, n)
	x := uint32(2463534242)
	for i := range p {
		x ^= x << 13 // Marsaglia's xorshift
		x ^= x >> 17
		x ^= x << 5
		p[i] = byte(1 + x%255)
	}
	return p
}

// Check compares memory with the pattern, from its beginning. With holes,
// bytes may be missing.
func (p Pattern) Check(memory []byte, holes bool) error {
	want := p[:len(memory)]
	if bytes.Equal(memory, want) {
		return nil
	}
	for i, b := range memory {
		if b != want[i] && !(holes && b == 0) {
			return fmt.Errorf("wrong answer: byte %d of %d is 0x%02x instead of 0x%02x", i, len(memory), b, want[i])
		}
	}
	return nil
}

// CheckEmpty makes sure that nothing has been written to memory.
func CheckEmpty(memory []byte) error {
	for i, b := range memory {
		if b != 0 {
			return fmt.Errorf("wrong answer: byte %d behind the last message is 0x%02x and was never sent", i, b)
		}
	}
	return nil
}
