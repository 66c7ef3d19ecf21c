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
//	Op         op.go, neighbor.go       the arguments
//	 v
//	validate   validate.go              an error before anything is sent
//	 v
//	call       call.go                  sequence number, signature, scratch memory
//	 |         background.go            in a goroutine: Start, Persistent.Start
//	 v
//	coll.Call  mpi/internal/coll        the algorithm, on contiguous bytes
//	 v
//	callNet    net.go                   messages
//	           write.go, channel.go     RDMA writes into the receive buffers of the ranks
//	           queue.go                 messages to a shared receive queue
//	           board.go, boardwait.go   shared memory of the ranks of a node
//	 v
//	engine     mpi/internal/engine
//
// # How mismatches are found
//
// A call has a signature of 64 bits (signature.go) of the arguments that all ranks must agree on.
// Messages, shared memory and liveness probes carry it, and a rank compares it with its own call of
// that sequence number (compare.go). With Options.Check the ranks exchange the arguments
// before they execute a call (check.go). describe.go describes the waits and the messages of calls
// for the deadlock detector.
package collective
