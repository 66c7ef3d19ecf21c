// Package peer gives the tests against Linux one view of an adapter, whether it
// is softrnic in this process or rdma_rxe in the lab's guest. An [End] is what a
// test needs at one side: a memory, a completion queue for everything, and
// queue pairs. The same code runs with any two ends, so what one pair does can
// be compared with what another does.
//
//	a, err := peer.OpenSoftrnic(addr, peer.Options{})
//	b, err := linux.Open(ctx, gid, peer.Options{})       // linux, err := peer.StartLinux(ctx, guest)
//	err = peer.Connect(a, b, verbs.ConnectOptions{})
//	err = b.PostRecv(0, 1, b.SGE(0, 64))
//	err = a.PostSend(0, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 64)})
//	wcs, err := b.Poll(1, time.Minute)
//
// At the Linux end a Python program on rdma-core's pyverbs does the work.
package peer
