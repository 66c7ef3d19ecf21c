// Package qp is the queue pair without I/O: work queues, state machine,
// segmentation, and requester and responder of RC, UC and UD. A [Core] has no
// goroutine, lock, clock or socket. Work requests, packets and the time go in;
// packets, completions and a deadline come out. So the same code runs under the
// adapter's engine, in a simulation, and in a test that plays a scenario
// packet by packet.
//
// # The contract
//
// A Core belongs to one caller at a time. In go
//
//   - work: [Core.PostSend], [Core.PostRecv], [Core.Modify];
//   - packets that are addressed to it, parsed and with their ICRC checked:
//     [Core.HandlePacket];
//   - the time, when its [Core.Deadline] has come: [Core.Advance].
//
// Out come, during these calls, completions and events through the [Host] and
// bytes through [Memory]. And after each of them there may be packets to send:
//
//	for core.Drain(now, batch) { // the batch is full
//		send(batch)
//	}
//	send(batch)
//	// ... sooner or later, when nothing better goes the same way:
//	core.DrainAck(now, batch)
//
// Drain lays out responses, NAKs and requests; the one acknowledgement that is
// owed waits for DrainAck, because the adapter knows better when it costs
// least: one for a whole batch, and behind the application's answer rather than
// ahead of it. It must not wait for long, or the peer repeats its requests; and
// it must not leave before Drain has returned false, for it acknowledges what
// the responses answer. PostRecv may owe one, too: it tells a peer that ran out
// of credits of the new receives.
//
// Packets are laid out straight into memory that [Out] hands over, from BTH to
// the place of the ICRC, which is stamped when the batch is complete. The large
// payloads of RC, whose requests end when they are acknowledged, are not copied
// there: Out gets the user's memory. What is sent again is, because the
// acknowledgement of the first packet may come while the second waits.
//
// # How a packet travels
//
//	requester                                        responder
//
//	PostSend                 post.go                 HandlePacket             packet.go
//	   | checked, copied                                | state, source, P_Key
//	   v                                                v
//	sendQueue                wqe.go                  handleRequest            responder.go
//	   | a request gets its PSNs                        | PSN: next, ahead, or seen before
//	   v                                                | place in the message, permission
//	sendRequests             requester.go               | a receive, if it takes one  inbound.go
//	   | window, credits, fence, max_rd_atomic          v
//	   v                                             scatter, place           gather.go place.go
//	sendData, sendRead ...                              | into the user's memory, last word last
//	   | header, gathered data                          v
//	   v                                             completeRecv             inbound.go
//	Out ----------- SEND, WRITE, READ ------------>     | owes an acknowledgement
//	                                                    v
//	HandlePacket             packet.go               Drain, DrainAck          respond.go
//	   v                                                |
//	handleResponse <------- ACK, NAK, data --------- Out
//	   | acknowledged, sequenceError, RNR  complete.go
//	   v
//	Host.Complete            complete.go, or fail.go: the request failed, the rest is flushed
//
// UC and UD take the same road with less on it: unreliable.go and datagram.go.
// What may be done in which state stands in state.go (attributes of each
// transition) and legality.go (work requests); modify.go carries it out. The
// timers and counters behind it all are package reliability's.
//
// # What a peer sees
//
// Only what IBTA volume 1 describes, as Linux's rdma_rxe and hfi1 have it. In
// particular: a message that is too long for its receive is refused with NAK
// 0x61 (rxe: 0x63), operations that the queue pair's access flags forbid with
// 0x61, wrong keys and ranges with 0x62. Packets behind one that drew an RNR
// NAK are dropped in silence (rxe adds a sequence NAK; as requester we expect
// it). Repeated SENDs and WRITEs are always acknowledged again. A long read is
// asked for in parts, each a read of its own on the wire.
package qp
