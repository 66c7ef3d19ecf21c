// Package rdm implements reliable datagram endpoints: messages, RDMA reads and
// writes, and atomics between any number of peers without connections, over one
// UD queue pair of any adapter that implements verbs. An [Endpoint] corresponds to
// a libfabric endpoint of type FI_EP_RDM.
//
//	e, err := rdm.Open(dev, rdm.Options{})
//	fmt.Println(e.Addr())             // pass it to peers out of band, or with Serve and Resolve
//	p, err := e.Dial(ctx, addr)       // performs the handshake
//	err = p.Send(ctx, msg)            // exactly once and in order, or p fails
//	n, from, err := e.Recv(ctx, buf)  // from any peer
//
// # Memory of peers
//
// A region is registered, and its address and key are sent to the peer by any
// means. The peer then accesses it without a call at this end:
//
//	r, err := e.Register(buf, verbs.AccessLocalWrite|verbs.AccessRemoteRead)
//	there := r.Remote(0)              // address and key
//
//	var op rdm.Op                     // at the peer; reusable after completion
//	err = p.Read(&op, mine.At(0, 4096), there)
//	err = p.Write(&op, mine.At(0, 4096), there.Add(8192))
//	err = p.FetchAdd(&op, there, 1)   // op.Old() is the original value
//	err = p.CompareSwap(&op, there, expected, new)
//	err = op.Wait(ctx)                // or op.Done(), while e.Progress() is called
//
// Operations are unordered. An operation that depends on another one must be
// started after its completion. A write is complete when its bytes are in the
// peer's memory, so that a later read or message observes them. A forbidden
// operation has no effect and fails with an *OpError. Every operation is executed
// exactly once, even if the network loses, duplicates or reorders packets.
//
// Each peer uses one of two implementations, depending on the capabilities of both
// ends ([Peer.Native] reports it). Both have the same API:
//
//   - Emulated, on every adapter: requests and data are messages, executed by the
//     peer's Endpoint, in its service goroutine ([Options.Service]) or in any call
//     of its methods. This is "RDMA over UD" of "On using Connection-Oriented vs.
//     Connection-Less Transport" (PPoPP '07), section 4.2.
//   - Native, between adapters that implement [verbs.DatagramRDMA]: the adapters
//     execute operations without a goroutine and without a copy.
//
// # Access control
//
// Datagrams without the random Q_Key of [Endpoint.Addr] are dropped. Options.Allow
// restricts the operations of a peer. By default a peer that knows the key of a
// region may do everything that the region permits.
//
// # Progress
//
// One of the waiting goroutines makes progress for all. If none waits, a timer polls
// every 20 ms, so that peers get responses. All methods may be called from any
// goroutine.
//
// # How a message travels
//
//	Peer.Send        message.go             Peer.Read, Write ...  op.go
//	   v                                       v
//	nack.Core        internal/nack          flushPending          emulate.go
//	   | packets, retransmission               | emulated: messages; native: native.go
//	   v                                       v
//	flush            wait.go                sendOpMessage -> nack.Core
//
//	handleDatagram   receive.go: from a peer, or a handshake (handshake.go)
//	   v
//	nack.Core -> handleMessage
//	   | a message: Endpoint.Recv (message.go)
//	   v
//	handleOpMessage  receive.go: serveRequest (serve.go) for an operation of the
//	                 peer, handleReply (emulate.go) for a local one
package rdm
