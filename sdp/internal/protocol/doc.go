// Package protocol implements the Sockets Direct Protocol (SDP) for one connection as a state
// machine without I/O: calls of the application and completions of the queue pair are its
// inputs, work requests its outputs.
//
//	c := protocol.New(cfg)
//	post(c.Receives()); c.ClearPosted()        // before the peer can send
//	c.Start(peer)                              // Hello and HelloAck have been exchanged
//	n := c.Write(p)                            // or Read, CloseWrite, Offer, ...
//	qp.PostRecv(c.Receives()); qp.PostSend(c.Sends()); c.ClearPosted()
//	c.HandleCompletion(&wc)                    // and post again
//
// # Message flow
//
//	send.go      Write --> flow.Sender --> buildRequests --> Sends
//	control.go   control messages and headers; in order with data, or not
//	credit.go    receives to post, credit updates
//	receive.go   HandleCompletion --> handleReceive --> dispatchMessage --> flow.Receiver --> Read
//
// The other files handle the messages of one subject: handshake.go (Hello and HelloAck),
// zerocopyread.go and zerocopywrite.go (advertisements), mode.go (transfer modes), resize.go
// (larger buffers) and close.go. receive.go dispatches to them, and they queue control messages.
// The state of all is in core.go and state.go.
//
// Ordered control messages keep their position relative to data; unordered ones are posted as
// soon as the peer has a receive for them (see controls).
//
// Zero-copy transfers use advertisements of application memory: the writer's (SrcAvail), which
// the reader reads, or the reader's (SinkAvail), which the writer writes to. If both sides
// advertise at once, the SinkAvail takes precedence; if data and a SinkAvail cross, the data
// does. Each advertisement ends with one message that both sides interpret alike:
//
//	SrcAvail    RdmaRdCompl of all of it, SendSm, or a SinkAvail that crossed with it
//	SinkAvail   RdmaWrCompl, SinkCancelAck, data or DisConn
//
// A caller that waits for the end of an offer must call [Core.SpillRing] meanwhile.
//
// # Untrusted peers
//
// A protocol violation by the peer fails the connection with an [ErrProtocol] that describes it.
// All state kept for a peer is bounded.
//
// # Sources
//
// The text of the standard (InfiniBand Architecture volume 1, annex A4) is not freely available;
// the messages and rules are those of the SDP implementations of OpenFabrics, Topspin and
// Mellanox.
package protocol
