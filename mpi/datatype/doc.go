// Package datatype says what a message is made of: which memory, how many
// elements of which kind, and what lies between them (chapter 5 of the MPI
// standard), and how elements are combined by a reduction (section 6.9).
//
//	b := datatype.Of(x)                      // x is a []float64, or of any other Element
//	b := datatype.Value(&x)                  // one
//	b := datatype.Strided(m, rows, 1, cols)  // a column of a matrix: MPI_Type_vector
//	b := datatype.Indexed(x, blocks)         // MPI_Type_indexed
//	b := datatype.Structs(particles)         // structs without pointers; padding is not sent
//	if err := b.Err(); err != nil {          // which block is where it cannot be
//
// A [Buffer] is a value. It refers to the memory and owns none of it, so it may
// be made once and used for many messages. Of a contiguous one Contiguous is the
// message as it goes on the wire; another one is packed and unpacked:
//
//	if mem, ok := b.Contiguous(); ok {
//		send(mem)
//	} else {
//		wire := make([]byte, b.Size())
//		b.Pack(wire)
//		send(wire)
//	}
//
// What goes on the wire are the elements back to back in the byte order of the
// machine. A job whose machines differ in it cannot exchange elements, and has to
// be told so when it starts.
//
// An [Op] combines the elements of two packed messages:
//
//	err := datatype.Sum.Apply(datatype.Float64, inout, in) // inout[i] = in[i] + inout[i]
//
// Nothing in here communicates, locks or keeps state.
package datatype
