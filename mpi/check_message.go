package mpi

import (
	"encoding/binary"
	"fmt"
)

// markSize is the size of what a message begins with where messages are checked:
// what it is made of.
const markSize = 1 + 4 + 8

// mark is how many bytes a message has besides its elements.
func (w *World) mark() int {
	if w.o.Check {
		return markSize
	}
	return 0
}

// marked is a copy of a message with its mark.
func marked(b Buffer) []byte {
	mem := make([]byte, markSize+b.Size())
	_, _ = binary.Encode(mem, binary.LittleEndian, signatureOf(b)) // there is room
	b.Pack(mem[markSize:])
	return mem
}

// unpack brings a message that was received packed to where it belongs, if it is
// what the buffer is for.
func (c *Comm) unpack(b Buffer, message []byte) error {
	if !c.world.o.Check || len(message) == 0 {
		b.Unpack(message)
		return nil
	}
	var sent signature
	if _, err := binary.Decode(message, binary.LittleEndian, &sent); err != nil {
		return fmt.Errorf("%w: %d bytes came, of a rank that does not check", ErrMismatch, len(message))
	}
	s := b.Signature()
	sent.Count = min(sent.Count, int64(s.Count)) // that there is too much has been told
	if err := (signature{uint8(s.Kind), s.Unit, int64(s.Count)}).accept(sent); err != nil {
		return fmt.Errorf("%w: %w", ErrType, err)
	}
	b.Unpack(message[markSize:])
	return nil
}
