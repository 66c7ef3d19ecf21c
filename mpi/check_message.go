package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// checkHeaderSize is the size in bytes of the type signature before each message, with
// Options.Check.
const checkHeaderSize = 1 + 4 + 8

// checkOverhead returns the bytes of a message before its elements.
func (j *job) checkOverhead() int {
	if j.o.Check {
		return checkHeaderSize
	}
	return 0
}

// packWithSignature returns a copy of a message after its type signature.
func packWithSignature(b datatype.Buffer) []byte {
	mem := make([]byte, checkHeaderSize+b.Size())
	_, _ = binary.Encode(mem, binary.LittleEndian, typeSignatureOf(b)) // mem is long enough
	b.Pack(mem[checkHeaderSize:])
	return mem
}

// unpackChecked unpacks a received message into b. With Options.Check it first compares the
// type signatures.
func (c *Comm) unpackChecked(b datatype.Buffer, message []byte) error {
	if !c.world.o.Check || len(message) == 0 {
		b.Unpack(message)
		return nil
	}
	var sent typeSignature
	if _, err := binary.Decode(message, binary.LittleEndian, &sent); err != nil {
		return fmt.Errorf("%w: message of %d bytes without type signature; set Options.Check at all ranks", ErrMismatch, len(message))
	}
	s := b.Signature()
	sent.Count = min(sent.Count, int64(s.Count)) // truncation is another error
	if err := (typeSignature{uint8(s.Kind), s.Unit, int64(s.Count)}).acceptSent(sent); err != nil {
		return err
	}
	b.Unpack(message[checkHeaderSize:])
	return nil
}
