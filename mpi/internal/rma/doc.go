// Package rma implements the memory operations of MPI RMA (MPI 4.1, chapter 12) without
// a network: the layout of elements in a window, its encoding for the target rank, and
// the operations at the target.
//
//	place := rma.At(10).Strided(4, 1, 100)                // 4 elements, 100 apart, from the 10th on
//	t := rma.Target{Element: rma.DenseElement(8)}         // of 8 bytes each
//	t.Vectors, n = place.AppendVectors(nil, 0, 4, 8, 16)  // in bytes
//	packet := t.Append(nil)
//
//	rest, err := t.Decode(packet)                         // at the target, which trusts no input:
//	err = t.Validate(len(memory), limit)                  // inside of the window, and bounded
//	t.Scatter(memory, rest)                               // Put
//	t.Gather(reply, memory)                               // Get
//	err = m.Accumulate(&t, call, rest, nil)               // Accumulate
//
// # Atomicity
//
// Elements of 8-byte integers (Int64, Uint64) at aligned addresses are combined by
// atomic operations of the processor: atomic with respect to each other, to package
// sync/atomic and thus to the atomics of an adapter (see package verbs). All other
// elements are combined under the lock that the caller of Memory holds.
package rma
