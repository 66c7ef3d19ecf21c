package mpi

import (
	"encoding/binary"
	"fmt"
)

// checkHeaderSize is the size of what a message begins with where messages are checked:
// what it is made of.
const checkHeaderSize = 1 + 4 + 8

// checkOverhead is how many bytes a message has besides its elements.
func (w *World) checkOverhead() int {
	if w.o.Check {
		return checkHeaderSize
	}
	return 0
}

// packWithSignature is a copy of a message with its mark.
func packWithSignature(b Buffer) []byte {
	mem := make([]byte, checkHeaderSize+b.Size())
	_, _ = binary.Encode(mem, binary.LittleEndian, typeSignatureOf(b)) // there is room
	b.Pack(mem[checkHeaderSize:])
	return mem
}

// unpackChecked brings a message that was received packed to where it belongs, if it is
// what the buffer is for.
func (c *Comm) unpackChecked(b Buffer, message []byte) error {
	if !c.world.o.Check || len(message) == 0 {
		b.Unpack(message)
		return nil
	}
	var sent typeSignature
	if _, err := binary.Decode(message, binary.LittleEndian, &sent); err != nil {
		return fmt.Errorf("%w: %d bytes came, of a rank that does not check", ErrMismatch, len(message))
	}
	s := b.Signature()
	sent.Count = min(sent.Count, int64(s.Count)) // that there is too much has been told
	if err := (typeSignature{uint8(s.Kind), s.Unit, int64(s.Count)}).acceptSent(sent); err != nil {
		return fmt.Errorf("%w: %w", ErrType, err)
	}
	b.Unpack(message[checkHeaderSize:])
	return nil
}
