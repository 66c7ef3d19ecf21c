// Package collective makes the collective calls of MPI (MPI 4.1, chapter 6): it connects the
// algorithms of package coll with the messages, the RDMA writes and the shared memory of a rank,
// and compares the calls of the ranks. Package mpi has the methods that a program calls.
//
//	job := collective.NewJob(eng, detector, collective.Options{})
//	c := job.NewComm(&base, collective.Config{...})       // all ranks of the communicator
//
//	op := collective.AllreduceOp(datatype.InPlace, datatype.Of(x), datatype.Sum)
//	err := c.Run(&op)                                     // blocking
//	b, err := c.Start(&op)                                // nonblocking: a Background
//	p, err := c.Init(&op)                                 // persistent: p.Start returns a Background
//
// # How a call travels
//
//	Op          op.go, blocks.go, neighbor.go   the arguments
//	 v          validate.go                     an error before anything is sent
//	execution   call.go                         sequence number, signature, scratch memory
//	 |          start.go                        in a goroutine: Comm.Start, Persistent.Start
//	 v          execute.go                      contiguous bytes, and the result
//	coll.Call   mpi/internal/coll               the algorithm
//	 v
//	callNet     net.go                          messages
//	 |          write.go, channel.go            RDMA writes into the receive buffers of the ranks
//	 |          queue.go, callqueue.go          messages to a shared receive queue
//	 |          board.go, boardwait.go          shared memory of the ranks of a node
//	 v
//	engine      mpi/internal/engine
//
// # How mismatches are found
//
//	signature.go   64 bits of the arguments that all ranks must agree on
//	 v             in messages, in shared memory and in liveness probes
//	compare.go     with the own call of that sequence number: log.go
//	 v
//	mismatch.go    to all ranks, by a packet of the deadlock detector
//	 v
//	the call, or the next one, returns ErrMismatch
//
// With Options.Check the ranks exchange the arguments (record.go) before they execute a call
// (check.go). A Job finds the communicator of a message in its table (table.go). The ranks of a new
// communicator agree on its context id by calls (agree.go). describe.go describes the waits and
// the messages of calls for the deadlock detector.
package collective
