// Package rdm is reliable datagrams between any number of peers, without a
// connection to any: messages, RDMA read and write, and atomics, over one UD queue
// pair of any adapter that implements verbs. What libfabric calls an endpoint of
// type FI_EP_RDM.
//
//	e, err := rdm.Open(dev, rdm.Options{})
//	fmt.Println(e.Addr())             // for others, by any means; see also Serve and Resolve
//	p, err := e.Dial(ctx, addr)       // makes contact
//	err = p.Send(ctx, msg)            // arrives whole, once and in order, or p is lost
//	n, from, err := e.Recv(ctx, buf)  // of any peer
//
// # Memory of peers
//
// Memory is registered, and what is to be known of it told to the peer by any
// means. Then the peer may use it, without a call here:
//
//	r, err := e.Register(buf, verbs.AccessLocalWrite|verbs.AccessRemoteRead)
//	there := r.Remote(0)              // a value: address and key
//
//	var op rdm.Op                     // the peer's side; may be used again and again
//	err = p.Read(&op, mine.At(0, 4096), there)
//	err = p.Write(&op, mine.At(0, 4096), there.Add(8192))
//	err = p.FetchAdd(&op, there, 1)   // op.Old() is what was there
//	err = p.CompareSwap(&op, there, expected, new)
//	err = op.Wait(ctx)                // or op.Done(), while e.Progress() is called
//
// Operations are started and complete in any order; one that is to follow another
// is started when that is complete. A write is complete when the bytes are in place
// at the peer, so that a read started then, or a message sent then, finds them. What
// is not permitted fails with an *OpError that says why, and does nothing. Every
// operation is carried out exactly once, whatever the network loses, doubles or
// reorders.
//
// There are two ways, chosen for each peer by what both ends can do ([Peer.Native]
// tells which), and the same for who calls:
//
//   - Emulated, on every adapter: requests and data are messages, and the peer's
//     Endpoint carries them out: its service goroutine ([Options.Service]), or
//     whoever calls it. This is "RDMA over UD" of "On using Connection-Oriented vs.
//     Connection-Less Transport" (PPoPP '07), section 4.2.
//   - Native, between adapters that implement [verbs.DatagramRDMA]: the adapters do
//     it themselves, with no goroutine and no copy in between.
//
// # Who may
//
// Nobody is heard without the random Q_Key of [Endpoint.Addr]. Options.Allow says
// what a peer may do, if not everything that a region permits to who knows its key.
//
// # Progress
//
// Whoever waits serves the network for all. If nobody does, a timer looks now and
// then (20 ms), so that others are answered. All methods may be called from any
// goroutine.
package rdm
