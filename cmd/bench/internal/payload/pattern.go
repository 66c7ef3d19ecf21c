// Package payload generates the data that experiments send, and lets the receiver verify
// that each byte arrived at its offset:
//
//	want := payload.New(size)
//	copy(source, want)
//	... // send it
//	err := want.Check(received, false) // "wrong data: byte 17 of 100: ..."
package payload

import (
	"bytes"
	"fmt"
)

// A Pattern is payload data. No byte is 0, the value of memory not written yet, and the pattern
// does not repeat at the distance of a packet or a message.
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

// Check compares memory with the beginning of the pattern and returns an error that names the
// first different byte. If holes is true, bytes of value 0 count as not received and are
// accepted.
func (p Pattern) Check(memory []byte, holes bool) error {
	want := p[:len(memory)]
	if bytes.Equal(memory, want) {
		return nil
	}
	for i, b := range memory {
		if b != want[i] && !(holes && b == 0) {
			return fmt.Errorf("wrong data: byte %d of %d: 0x%02x, want 0x%02x", i, len(memory), b, want[i])
		}
	}
	return nil
}

// CheckEmpty returns an error if a byte of memory has been written.
func CheckEmpty(memory []byte) error {
	for i, b := range memory {
		if b != 0 {
			return fmt.Errorf("wrong data: byte %d behind the last message: 0x%02x was never sent", i, b)
		}
	}
	return nil
}
