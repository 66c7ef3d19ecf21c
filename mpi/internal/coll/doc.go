// Package coll implements the algorithms of MPI's collective operations (MPI 4.1,
// chapter 6) over any [Net] that carries messages between ranks.
//
//	c := coll.Call{Net: net}                                  // one per rank
//	err := c.Bcast(0, buf)                                    // all get rank 0's buffer
//	err := c.Allreduce(send, recv, coll.Reduction{Size: 8, Commutative: true, Reduce: add})
//	err := c.Alltoallv(send, sendParts, recv, recvParts)
//
// Data is bytes: the caller packs other datatypes, and a reduction gives the size of an
// element and the function that combines two vectors. MPI_IN_PLACE is to pass the same
// memory as send and receive buffer.
//
// A collective has several [Algorithms], each documented with its source: few rounds
// for short vectors, few bytes for long ones, for any number of ranks. The table in
// decide.go selects the algorithm of a call, unless it is chosen by name:
//
//	c.Choices, err = coll.ParseChoices("allreduce=ring,bcast=chain")
//
// Calls block only in Net.Wait. A nonblocking collective is the same call in a
// goroutine with its own Call and Net.
//
// Algorithms may require extensions of Net: Needs.Network. Ranks of one host do short
// calls in shared memory: [SharedMemoryNet] and [Board].
package coll
