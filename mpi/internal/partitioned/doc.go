// Package partitioned implements partitioned communication (MPI 4.1, chapter 4): a message from
// one rank to one other that is sent repeatedly from the same memory into the same memory, in
// partitions that become ready one at a time. It is the channel of the ACP library as an interface
// of MPI: the pair and the memory are fixed at the beginning, so that a partition is one RDMA
// write, without a match, a copy or a rendezvous.
//
//	t := partitioned.NewTable(engine)
//	core.Handler = t.HandlePacket                  // packets of PacketContext
//	core.OnNotify = t.HandleNotify                 // notices with NoticeFlag
//	s, err := t.NewSend(&comm, buffer, 8, 1, 7)    // 8 partitions to rank 1, tag 7
//	err = s.Start()
//	err = s.Pready(0, 8)                           // in any order, from any goroutine
//	r, err := t.NewRecv(&comm, buffer, 2, 0, 7)    // at rank 1, in 2 partitions
//	err = r.Start()
//	arrived, err := r.Parrived(0)
//
// # How a partition travels
//
//	sender                                         receiver
//
//	NewSend  send.go   --- Offer --------------->  NewRecv   receive.go: matched in the order
//	                                                         of both calls (table.go)
//	Start    send.go                               Start     receive.go: registers the memory
//	         <------------------------- Key -----            of the first round; Start
//	Pready   send.go   --- RDMA WRITE, notice --->  memory
//	                                               HandleNotify  table.go
//	                                               Parrived, Ready  receive.go
//
// A Key, or a Start of each later round, tells the sender that the receiver has started. Partitions
// that are ready before wait for it. In three cases a partition is a message with a number of its own
// as tag, and there is no Start: without RDMA WRITE with immediate data, if the memory cannot be
// registered, and if the whole message is short, because a copy then costs less than the wait.
//
// The numbers of partitions of the two sides may differ. The sizes must be equal.
//
// The engine's lock guards all state. Pready and Parrived may be called concurrently.
package partitioned
