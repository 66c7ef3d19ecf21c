// Package acp is communication in as little memory as it takes, in the manner of the
// library Advanced Communication Primitives (ACP): one space of global addresses over the memory of
// all ranks of a job, and channels, which are there for those that talk and for as long as they do.
// It runs on any device that implements package verbs.
//
// # Use
//
// A program is started once for each rank, by softrnic mpirun -n 4 ./program or another
// process manager that package pmi knows. Alone it is a job of one rank.
//
//	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{})
//
//	r, err := p.Register(buf)                         // buf has global addresses now
//	h := p.Copy(p.StarterGA(2), r.GA(0), 100, acp.None) // to rank 2's starter memory, which all know
//	h = p.Copy(there, elsewhere, 100, acp.None)       // from any rank to any other
//	h = p.Add8(&old, there, 1, h)                     // when that is done; old is what there was
//	err = p.Complete(ctx, h)                          // all up to that
//	err = p.Sync(ctx)                                 // all ranks have come here
//
//	ch, err := p.NewChannel(left, p.Rank(), acp.ChannelOptions{}) // this end; connected by and by
//	n, err := ch.Recv(buf).Wait(ctx)                  // or Send, at the other end
//	_, err = ch.Free().Wait(ctx)
//
//	c, err := acp.NewChan[Particle](p, left, right, acp.ChannelOptions{}) // the same in Go's manner
//	err = c.Send(ctx, Particle{...})
//
//	err = p.Finalize()
//
// docs/acp.md says what each acp_ function is called here.
//
// # Memory
//
// What grows with the number of ranks is two pointers for each. A connection is made to those that
// something is wanted of. What a channel takes, [Channel.Memory] tells.
//
// # Goroutines and progress
//
// All methods may be called from any goroutine at any time: who waits first serves the
// network for all. Copies and most atomics go on by themselves, for the adapters do them. Channels
// go on in calls of this package, or all the time with Options.Progress.
//
// # Errors
//
// An operation on an address that nobody has, or that lies beyond the end of its region, fails, and its
// failure is told by Complete, with words that name it; no other operation suffers. All errors are an [*Error]; in it
// are, for errors.Is, [ErrRegion], [ErrRange], [ErrLost] and the others.
package acp
