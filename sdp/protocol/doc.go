// Package protocol is SDP between two sockets, without I/O: calls of the
// application and completions of the queue pair come in, work requests come
// out.
//
//	c := protocol.New(cfg)
//	post(c.Receives()); c.Posted()             // before the peer can send
//	c.Start(peer)                              // Hello and HelloAck have been exchanged
//	n := c.Write(p)                            // or Read, CloseWrite, Offer, ...
//	qp.PostRecv(c.Receives()); qp.PostSend(c.Sends()); c.Posted()
//	c.Complete(&wc)                            // and post again
//
// # How a message travels
//
//	Write --> flow.Sender --> pump --> Sends      data, in messages of the flow control's choice
//	                          controls            what is said beside: credits, ends, advertisements
//	Complete --> arrived --> dispatch --> flow.Receiver --> Read
//	         --> completed                        buffers are free again
//
// Memory of the application itself travels by advertisement: SrcAvail (offer.go
// at who writes, avail.go at who reads) and SinkAvail (sink.go).
//
// Sources: there is no text of the standard (InfiniBand Architecture volume 1,
// annex A4) to be had freely; the messages and rules are those of the sockets
// that OpenFabrics once had, of Topspin's and of Mellanox's.
package protocol
