// Package peer gives the tests against Linux one interface to an adapter, softrnic in this
// process or rdma_rxe in the lab's guest. A [Side] is an adapter with a memory region, a
// completion queue and queue pairs. The same test runs with any two sides, so the results of
// different pairs can be compared.
//
//	a, err := peer.OpenSoftrnic(addr, peer.Options{})
//	b, err := linux.Open(ctx, gid, peer.Options{})       // linux, err := peer.StartLinux(ctx, guest)
//	err = peer.Connect(a, b, verbs.ConnectOptions{})
//	err = b.PostRecv(0, 1, b.SGE(0, 64))
//	err = a.PostSend(0, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 64)})
//	wcs, err := b.Poll(1, time.Minute)
//
// The Linux side is a Python program that uses rdma-core's pyverbs.
package peer
