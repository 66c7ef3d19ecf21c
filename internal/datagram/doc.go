// Package datagram sends and receives the packets of a [nack.Core] with a UD queue
// pair, for package rdm and MPI's UD fabric.
//
// A [Port] owns the queue pair, the receive buffers, the packets buffered for
// retransmission, and the addresses of peers. It has no lock and no goroutine, and
// is not safe for concurrent use.
//
//	p, err := datagram.Open(dev, datagram.Options{Self: 3, Epoch: epoch})
//	err = p.Connect(7, peer)                  // sets the address of peer 7
//	err = p.Core.Send(p.Now(), 7, head, body) // messages go through the core
//	p.Drain(p.Now())                          // sends the core's packets
//	n, err := p.CQ.PollWait(ctx, wcs)         // without the caller's lock
//	p.Look(wcs[:n])                           // Options.OnDatagram gets the datagrams
//	p.Core.Advance(p.Now())                   // at Core.Deadline
//
// Datagrams up to 256 bytes are sent inline. The adapter reads longer ones from the
// core's slots, which are released by the completion.
package datagram
