package pt2pt

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

// signatureSize returns the bytes of a message before its elements: with Options.Check the type
// signature.
func (j *Job) signatureSize() int {
	if j.check {
		return datatype.SignatureSize
	}
	return 0
}

// packMessage returns the payload of a message: the memory of a contiguous buffer, or a packed
// copy. With copied it always returns a copy. With Options.Check the payload starts with the
// type signature.
func (j *Job) packMessage(b datatype.Buffer, copied bool) []byte {
	if j.check {
		return b.PackSigned()
	}
	if mem, ok := b.Contiguous(); ok && !copied {
		return mem
	}
	mem := make([]byte, b.Size())
	b.Pack(mem)
	return mem
}

// receiveMemory returns the memory for the payload of a message to receive, and whether it must be
// unpacked into b afterwards.
func (j *Job) receiveMemory(b datatype.Buffer) (mem []byte, packed bool) {
	if mem, ok := b.Contiguous(); ok && !j.check {
		return mem, false
	}
	return make([]byte, j.signatureSize()+b.Size()), true
}

// unpackMessage unpacks a received message into b. With Options.Check it first compares the
// signatures of the datatypes.
func (j *Job) unpackMessage(b datatype.Buffer, message []byte) error {
	if !j.check || len(message) == 0 {
		b.Unpack(message)
		return nil
	}
	err := b.UnpackSigned(message)
	if errors.Is(err, datatype.ErrUnsigned) {
		return fmt.Errorf("%w: message of %d bytes without type signature; set Options.Check at all ranks", deadlock.ErrMismatch, len(message))
	}
	return err
}
