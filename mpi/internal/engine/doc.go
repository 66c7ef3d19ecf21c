// Package engine runs the protocol of one rank: it owns the lock around the Core, and
// makes progress on the network for the goroutines that wait.
//
//	e, err := engine.New(rank, size, func(h fabric.Host) (fabric.Fabric, error) {
//		return rdma.New(dev, h, book, rdma.Options{})
//	})
//	r := &protocol.Request{...}
//	err = e.Receive(r)          // starts
//	err = e.Wait(ctx, r)        // makes progress until r is done
//
// The engine has no goroutine. It uses the leader/follower pattern: of the waiting
// goroutines one is the leader, blocks in Fabric.Block and handles the events of all.
// The others are followers; they are woken when their Waitable is ready or when the
// leader returns and another leader is needed. A program of one goroutine thus waits in
// the adapter itself, without a context switch, and any number of goroutines may call.
//
// A rank that must respond while its program computes, as with windows, has a goroutine
// call PollWhenIdle, which leads when no other goroutine has polled for a while.
//
// The engine also records which Waitables a program polls repeatedly with Test, for
// deadlock reports (PollStats).
//
// A Waitable is a condition that is evaluated under the lock: a request, one of several
// requests, a message that Probe looks for, a nonblocking collective.
package engine
