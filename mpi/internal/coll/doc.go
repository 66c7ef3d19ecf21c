// Package coll has the algorithms of MPI's collective operations (MPI 4.1, chapter
// 6), over any [Net] that carries messages between ranks.
//
//	c := coll.Call{Net: net}                                  // one rank's; every rank has one
//	err := c.Bcast(0, buf)                                    // all have what rank 0 has
//	err := c.Allreduce(send, recv, coll.Reduction{Size: 8, Commutative: true, Reduce: add})
//	err := c.Alltoallv(send, sendParts, recv, recvParts)
//
// Data is bytes: who has something else packs it first, and says of a reduction how
// long an element is and how two vectors are combined. What MPI calls in place is
// to give the same memory for both.
//
// A collective has several [Algorithms], each in a file of its own that says who
// described it: few rounds for what is short, few bytes for what is long, for any
// number of ranks. Which one does a call is found in the table of decide.go, or was
// chosen by name:
//
//	c.Choices, err = coll.ParseChoices("allreduce=ring,bcast=chain")
//
// Calls block in Net.Wait only. A collective that does not block is the same call
// in a goroutine of its own, with a Call and a Net of its own.
//
// Algorithms that need more of a network than messages have a place here too:
// Needs.Network. Ranks of one machine that have memory in common do short calls there:
// [Sharer] and [Board].
package coll
