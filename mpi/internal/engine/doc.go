// Package engine is a rank while it runs: the lock around its protocol, and the
// question who looks after the network.
//
//	e, err := engine.New(rank, size, func(h fabric.Host) (fabric.Fabric, error) {
//		return rdma.New(dev, h, book, rdma.Options{})
//	})
//	r := &protocol.Request{...}
//	err = e.Receive(r)          // begins
//	err = e.Wait(ctx, r)        // serves the network until it is done
//
// There is no goroutine of its own. Of the goroutines that wait one leads: it
// is in Fabric.Block, and handles what comes for all. The others are parked,
// and woken when what they wait for is there, or when the leader leaves and one
// of them has to follow. So a program of one goroutine waits in the adapter
// itself, without a hand-over, and any number of goroutines may call.
//
// A rank that is asked for something while it computes, as windows are, has a
// goroutine call Attend: it leads when nobody else has for a while.
//
// What programs ask for with Test again and again is noted, too, so that it can be
// seen who waits like this (Polls).
//
// A Waitable is anything whose Ready can be asked under the lock: a request,
// one of several requests, a message that Probe looks for, a collective call
// in the background.
package engine
