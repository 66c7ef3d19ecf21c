// Package datagram puts the packets of a [nack.Core] on a UD queue pair: what
// package rdm and MPI's fabric of datagrams have in common.
//
// A [Port] has the queue pair, receives for whatever may come, the packets that may
// be asked for again, and the addresses of peers. It has no lock and no goroutine:
// one call at a time, from whoever drives it.
//
//	p, err := datagram.Open(dev, datagram.Options{Self: 3, Epoch: epoch})
//	err = p.Connect(7, peer)                  // where peer 7 is
//	err = p.Core.Send(p.Now(), 7, head, body) // messages are the core's
//	p.Drain(p.Now())                          // what it has to send leaves
//	n, err := p.CQ.PollWait(ctx, wcs)         // without the caller's lock
//	p.Look(wcs[:n])                           // Options.OnDatagram gets the datagrams
//	p.Core.Advance(p.Now())                   // at Core.Deadline
//
// Datagrams up to 256 bytes travel in their work request. Longer ones are read by
// the adapter where the core keeps them, which knows from the completion that it
// may write there again.
package datagram
