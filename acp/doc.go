// Package acp implements communication with little memory per rank, after the library Advanced Communication
// Primitives (ACP): a global address space over the memory of all ranks of a job, and channels whose memory
// exists only while they are used. It runs on any device that implements package verbs.
//
// # Use
//
// A program is started once for each rank, by softrnic mpirun -n 4 ./program or another process manager that
// package pmi supports. Started without one, it is a job of one rank.
//
//	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{})
//
//	r, err := p.Register(buf)                           // buf has global addresses now
//	h := p.Copy(p.StarterGA(2), r.GA(0), 100, acp.None) // to rank 2's starter memory, known to all ranks
//	h = p.Copy(there, elsewhere, 100, acp.None)         // between any two ranks
//	h = acp.FetchAdd(p, &old, there, 1, h)              // starts when h is complete
//	err = p.Complete(ctx, h)                            // waits for h and all operations before it
//	err = p.Sync(ctx)                                   // barrier
//
//	ch, err := p.NewChannel(left, p.Rank(), acp.ChannelOptions{}) // this end, which connects in the background
//	n, err := ch.Recv(buf).Wait(ctx)                              // or Send, at the other end
//	_, err = ch.Free().Wait(ctx)
//
//	c, err := acp.NewChan[Particle](p, left, right, acp.ChannelOptions{}) // a typed channel with blocking methods
//	err = c.Send(ctx, Particle{...})
//
//	err = p.Finalize(ctx)
//
// docs/acp.md maps the acp_ functions to methods of this package.
//
// # Memory
//
// Memory that grows with the number of ranks is two pointers for each rank. A rank connects only to the ranks that
// it accesses. [Channel.Memory] returns the memory of a channel.
//
// # Goroutines and progress
//
// All methods may be called concurrently: one of the waiting goroutines polls the network for all. The adapters
// execute copies and most atomics without calls of the program. Channels make progress in calls of this package,
// or all the time with Options.Progress.
//
// # Errors
//
// An operation on an address outside of all regions fails, and Complete returns its error, which names the
// operation; other operations are not affected. All errors are an [*Error] that wraps [ErrRegion], [ErrRange],
// [ErrLost] or another error of this package.
//
// # How an operation travels
//
//	Copy, FetchAdd ...     copy.go, atomic.go     Channel.Send, Recv     request.go
//	   v                                             v
//	operation, task        handle.go              progressSend, -Recv    send.go, recv.go
//	   | starts after the handle it depends on       |
//	   v                                             v
//	access                 access.go: one RDMA operation on memory of one rank
//	   | region directory of the rank: peer.go
//	   v
//	fabric.Net             internal/fabric: rc (connections) or ud (RDMA over datagrams)
//
// A copy between two other ranks is relayed in blocks (relay.go). Operations on memory of this rank do not use
// the fabric (local.go). The waiting goroutine polls the fabric for all (wait.go).
package acp
