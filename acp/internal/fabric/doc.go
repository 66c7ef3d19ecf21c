// Package fabric defines the transport of package acp to the memory of other ranks: puts, gets and atomics
// with remote keys, and their completion. Package rc implements it by reliable connections, package ud by
// datagrams.
//
//	net, err := rc.New(dev, host, kvs, rc.Options{}) // a fabric.Net
//	mem, err := net.Register(buf, true)
//	err = net.Start(card)                             // publishes the address
//	net.Connect(3)                                    // calls Host.PeerFound(3, its card), or Host.PeerLost
//	net.Post(3, &fabric.Op{Kind: fabric.Put, Mem: mem, N: 100, Addr: addr, RKey: rkey, Owner: o})
//	net.Flush()                                       // calls o.OpDone later
//
// # Order
//
// Operations of one rank on another are executed in the order in which they were posted, as far as puts and atomics
// go: a reader that sees the data of a put also sees that of earlier puts, and of each put the last word becomes
// visible last. A get sees the effects of the operations before it.
//
// # Failure
//
// An operation that the target refuses fails with ErrAccess, and the operations behind it are still executed, once
// each. A rank that does not respond any more is lost, and all operations on it fail with ErrLost.
package fabric
