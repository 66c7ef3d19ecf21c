// Package rma is what one-sided communication does to memory (chapter 12 of the
// MPI standard), without a network: where in a window elements lie, how that is
// told to the rank whose window it is, and what is done there.
//
//	place := rma.At(10).Strided(4, 1, 100)         // 4 elements, 100 apart, from the 10th on
//	t := rma.Target{Element: rma.DenseElement(8)}         // of 8 bytes each
//	t.Vectors, n = place.Vectors(nil, 0, 4, 8, 16) // in bytes
//	packet := t.Append(nil)
//
//	rest, err := t.Decode(packet)                  // at the target, who trusts nobody:
//	err = t.Check(len(memory), limit)              // inside of the window, and not too much
//	t.Scatter(memory, rest)                        // Put
//	t.Gather(reply, memory)                        // Get
//	err = m.Accumulate(&t, call, rest, nil)        // Accumulate
//
// # What is atomic with what
//
// Elements of 8-byte integers (Int64, Uint64) at addresses that are multiples of 8
// are combined by atomic operations of the processor: with each other, with
// sync/atomic, and so with the atomics of an adapter, whose place they are
// (see package verbs). All others are combined under the lock that the caller of
// Memory holds.
package rma
