// Package pt2pt makes the point-to-point communication of MPI (MPI 4.1, chapter 3): sends, receives
// and probes, and the requests of all nonblocking calls. Package mpi has the methods that a program
// calls.
//
//	job := pt2pt.NewJob(false)
//	c := job.NewComm(&base)                             // each rank of the communicator
//
//	in, err := c.Irecv(datatype.Of(x), match.Any, 7)    // starts
//	err = c.Send(datatype.Of(y), 1, 7, pt2pt.Standard)  // waits
//	status, err := in.Wait()
//	i, status, err := pt2pt.WaitAny([]*pt2pt.Request{in})
//
// # How a message travels
//
//	Send, Isend        send.go             Recv, Irecv        receive.go
//	   | arguments     comm.go                | arguments     comm.go
//	   | payload       payload.go             | memory        payload.go
//	   v                                      v
//	Request            request.go          Request            request.go
//	   | protocol.Request                     | protocol.Request
//	   v                                      v
//	engine.Engine      internal/engine     engine.Engine      internal/engine
//	   v                                      v
//	protocol.Core      internal/protocol   protocol.Core      internal/protocol
//	   v                                      ^
//	fabric.Fabric ------- packets ---------> fabric.Fabric    internal/fabric
//
// Wait and Test wait for one request (request.go) or for several (multiple.go) as conditions of the
// engine; the result of a receive unpacks its payload (payload.go). A persistent request
// (persistent.go) starts its send or receive anew. A probe (probe.go) looks for a message in the
// protocol's queue. A request may also stand for a collective call of package collective or a
// one-sided operation of package onesided (call.go), or a message of package partitioned
// (partitioned.go). describe.go describes requests and probes that
// a program waits for, or polls, for the deadlock detector.
package pt2pt
