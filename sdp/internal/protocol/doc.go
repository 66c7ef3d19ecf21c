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
//	                          controls            what is said beside: ends, advertisements, answers
//	                          words               and how many receives there are
//	Complete --> arrived --> dispatch --> flow.Receiver --> Read
//	         --> completed                        buffers are free again
//
// Some messages have their place among the data, and neither overtake what was
// written before nor are overtaken by what is written after them; others go aside
// as soon as there is a receive for them (see controls).
//
// Memory of the application itself travels by advertisement: SrcAvail (offer.go
// at who writes, avail.go at who reads) and SinkAvail (sink.go at who reads,
// drain.go at who writes). If both sides advertise at the same time the SinkAvail
// counts; if data and a SinkAvail cross the data does. Each advertisement has one
// end that both sides see alike:
//
//	SrcAvail    RdmaRdCompl of all of it, SendSm, or a SinkAvail that crossed with it
//	SinkAvail   RdmaWrCompl, SinkCancelAck, data or DisConn
//
// A call that waits for the end of an offer has to call [Core.SpillRing] meanwhile.
//
// # Trust
//
// A peer that does not keep to the protocol ends the connection with an
// [ErrProtocol] that says what it did. What is kept for it is bounded.
//
// Sources: there is no text of the standard (InfiniBand Architecture volume 1,
// annex A4) to be had freely; the messages and rules are those of the sockets
// that OpenFabrics once had, of Topspin's and of Mellanox's.
package protocol
