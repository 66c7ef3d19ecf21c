// Package datatype describes the data of a message: its memory, the number and kind of
// elements and the layout of the elements (MPI 4.1, chapter 5); and the operations of
// reductions (section 6.9).
//
//	b := datatype.Of(x)                      // x is a []float64, or of any other Element
//	b := datatype.Value(&x)                  // one
//	b := datatype.Strided(m, rows, 1, cols)  // a column of a matrix: MPI_Type_vector
//	b := datatype.Indexed(x, blocks)         // MPI_Type_indexed
//	b := datatype.Structs(particles)         // structs without pointers; padding is not sent
//	if err := b.Err(); err != nil {          // which block is out of range
//
// A [Buffer] is a value. It refers to the memory and does not own it, so that it can be
// created once and used for many messages. The Contiguous bytes of a contiguous buffer
// are the message on the wire; any other buffer is packed and unpacked:
//
//	if mem, ok := b.Contiguous(); ok {
//		send(mem)
//	} else {
//		wire := make([]byte, b.Size())
//		b.Pack(wire)
//		send(wire)
//	}
//
// The wire format is the elements back to back in the byte order of the machine. A job
// of machines with different byte orders cannot exchange elements and must be rejected
// at its start.
//
// An [Op] combines the elements of two packed messages:
//
//	err := datatype.Sum.Apply(datatype.Float64, inout, in) // inout[i] = in[i] + inout[i]
//
// The package performs no I/O and keeps no state.
package datatype
