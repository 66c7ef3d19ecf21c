// Package qp implements a queue pair without I/O: work queues, state machine,
// segmentation, and requester and responder of RC, UC and UD. A [Core] is sans-IO:
// it has no goroutine, lock, clock or socket. Its inputs are work requests, packets
// and the time; its outputs are packets, completions and a deadline. The same code
// runs in the adapter, in a simulation, and in packet-by-packet tests.
//
// # The contract
//
// A Core is not safe for concurrent use. Its inputs are
//
//   - work: [Core.PostSend], [Core.PostRecv], [Core.Modify];
//   - packets addressed to it, parsed and with a checked ICRC: [Core.HandlePacket];
//   - the time, at its [Core.Deadline]: [Core.Advance].
//
// During these calls it delivers completions and events to the [Host] and data to
// [Memory]. After each call there may be packets to send:
//
//	for core.Drain(now, batch) { // the batch is full
//		send(batch)
//	}
//	send(batch)
//	// ... later, unless another packet has carried the acknowledgement:
//	core.DrainAck(now, batch)
//
// Drain builds responses, NAKs and requests. The pending acknowledgement is left to
// DrainAck, so that the adapter can coalesce acknowledgements of a batch and send
// them after the application's reply. A long delay causes retransmissions by the
// peer. DrainAck must not be called before Drain has returned false, because the
// acknowledgement covers requests answered by responses. PostRecv may schedule an
// acknowledgement as a credit update for a peer without credits.
//
// Packets are built in memory of [Out], from BTH to the space for the ICRC, which
// is computed when the batch is complete. Large RC payloads are not copied: Out
// refers to the application's memory, which is in use until the request is
// acknowledged. Retransmissions are copied, because the acknowledgement of the
// first packet may arrive while the second one is queued.
//
// # How a packet travels
//
//	requester                                  responder
//
//	PostSend            post.go                HandlePacket         packet.go
//	   | checked, copied                          | state, source, P_Key
//	   v                                          v
//	sendQueue           wqe.go                 rc.handlePacket      rc.go
//	   |                                          v
//	   |                                       handleRequest        responder.go
//	   v                                          | PSN: next, ahead, or seen before
//	Drain, rc.drain     drain.go, rc.go           v
//	   v                                       receiveSend, receiveWrite ...
//	sendRequests        requester.go              | permission, a posted receive (inbound.go)
//	   | PSNs, credits, fence                     v
//	   v                                       scatter, writeMemory gather.go
//	rc.sendPacket       rc.go                     | into the application's memory
//	   | window                                   v
//	buildData           build.go               completeRecv         inbound.go
//	   v headers, gathered data                   v
//	Out ------- SEND, WRITE, READ -------->    acceptPacket         responder.go
//	                                              | schedules the acknowledgement
//	                                              v
//	HandlePacket        packet.go              Drain, DrainAck      drain.go
//	   v                                          v
//	handleResponse <--- ACK, NAK, data ------- Out
//	   |                response.go
//	   v
//	completeHead        complete.go, or fail.go if the request failed
//	   v
//	Host.Complete
//
// The four transports rc, uc, ud and udRDMA implement one interface (transport.go),
// which New chooses. UC uses a subset of this path: uc.go; UD another one: ud.go. RDMA
// over UD (udrdma.go) has a path of its own, in files that correspond: peer_post.go,
// peer_request.go, peer_serve.go and peer_response.go.
//
// state.go lists the attributes of each state transition and the work requests of
// each state, and modify.go applies them. Package reliability provides windows,
// timers and credits.
//
// # Conformance
//
// The wire protocol is that of IBTA volume 1, as implemented by Linux's rdma_rxe
// and hfi1. In particular: a message that exceeds its receive draws NAK 0x61 (rxe:
// 0x63), operations that the access flags forbid 0x61, wrong keys and ranges 0x62.
// Packets after one that drew an RNR NAK are dropped silently (rxe adds a sequence
// NAK, which the requester accepts). Repeated SENDs and WRITEs are always
// acknowledged again. A long read is split into several read requests.
package qp
