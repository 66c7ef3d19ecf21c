// Package fabric defines the transport of package acp to the memory of other ranks: puts, gets and atomics
// with remote keys, and their completion. Package rc implements it by reliable connections, package ud by
// datagrams.
//
//	net, err := rc.New(dev, host, book, rc.Options{}) // a fabric.Net
//	mem, err := net.Register(buf, true)
//	err = net.Start(card)                             // others find us
//	net.Connect(3)                                    // Host.PeerFound(3, its card) follows, or Host.PeerLost
//	net.Post(3, &fabric.Op{Kind: fabric.Put, Mem: mem, N: 100, Addr: addr, RKey: rkey, Owner: o})
//	net.Flush()                                       // o.OpDone follows
//
// # Order
//
// Operations of one rank on another are carried out in the order in which they were posted, as far
// as puts and atomics go: what a put has written is seen by who sees what a later one has written,
// of each put the last word last. A get sees what operations before it have done.
//
// # Failure
//
// An operation that the target refuses (ErrAccess) fails, and those behind it
// are carried out all the same, once each. A rank that does not answer any more is lost, with all
// operations on it (ErrLost).
package fabric
