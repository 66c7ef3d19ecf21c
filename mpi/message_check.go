package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// The datatype of a message is compared with that of its receive. The signature in the envelope
// of each message has the element kind; with Options.Check the payload starts with the type
// signature, which has the count as well.

// messageKindBits is the number of bits of the element kind in the signature of a message.
const messageKindBits = 5

// messageSignature returns the signature of a message: the element kind, and for structs a hash
// of their fields. It is 0 for an empty message.
func messageSignature(b datatype.Buffer) uint64 {
	s := b.Signature()
	if s.Count == 0 {
		return 0
	}
	return uint64(s.Kind.Canonical()+1) | uint64(s.Unit)<<messageKindBits
}

// kindsMatch reports whether a message of one signature may be received by a receive of
// another. The signature of a synchronous message has no hash of struct fields.
func kindsMatch(sent, expected uint64) bool {
	return sent == expected || sent == 0 || expected == 0 || sent <= envelope.MaxShortSignature && sent == expected&envelope.MaxShortSignature
}

// kindText returns the name of the element kind in the signature of a message.
func kindText(sign uint64) string {
	kind := datatype.Kind(sign&envelope.MaxShortSignature - 1)
	if kind == datatype.Struct {
		return fmt.Sprintf("structs of fields %x", sign>>messageKindBits)
	}
	return fmt.Sprintf("%v elements", kind)
}

// checkOverhead returns the bytes of a message before its elements.
func (j *job) checkOverhead() int {
	if j.o.Check {
		return datatype.SignatureSize
	}
	return 0
}

// packWithSignature returns a copy of a message after its type signature.
func packWithSignature(b datatype.Buffer) []byte {
	mem := make([]byte, datatype.SignatureSize+b.Size())
	_, _ = binary.Encode(mem, binary.LittleEndian, b.Signature().Normalize()) // mem is long enough
	b.Pack(mem[datatype.SignatureSize:])
	return mem
}

// unpackChecked unpacks a received message into b. With Options.Check it first compares the
// type signatures.
func (c *Comm) unpackChecked(b datatype.Buffer, message []byte) error {
	if !c.world.o.Check || len(message) == 0 {
		b.Unpack(message)
		return nil
	}
	var sent datatype.Signature
	if _, err := binary.Decode(message, binary.LittleEndian, &sent); err != nil {
		return fmt.Errorf("%w: message of %d bytes without type signature; set Options.Check at all ranks", ErrMismatch, len(message))
	}
	s := b.Signature()
	sent.Count = min(sent.Count, s.Count) // truncation is another error
	if err := s.Accept(sent); err != nil {
		return err
	}
	b.Unpack(message[datatype.SignatureSize:])
	return nil
}
