// Package protocol is point-to-point communication of MPI (MPI 4.1, chapter 3)
// without I/O: calls of the program and packets of other ranks come in, calls of a
// [Net] go out. One-sided communication has its beginnings here, too.
//
//	c := protocol.New(rank, size)
//	c.Attach(net)
//	c.Receive(&in)                       // in.Envelope says from whom, in.Buf where to
//	c.Send(&out)                         // out.Done says when Buf may be used again
//	err := c.Packet(from, &h, payload)   // one has come: in.Done may be true now
//	c.Moved(move, nil)                   // an RDMA READ or WRITE has ended
//	c.Resume(to)                         // there is room again on the way to a rank
//	c.Lost(rank, why)                    // a rank cannot be reached any more
//
// Nothing in here waits: a call begins what it is to do and returns, and [Request]
// says when it is done. There is no lock, so one call at a time.
//
// # How a message travels
//
//	short      EAGER                                 done when it has left
//	           EAGER, MATCHED                        with Request.Sync
//	Fetched    RTS, RDMA READ by the receiver, FIN
//	Stored     RTS, CTS, RDMA WRITE by the sender, FIN
//	Packed     RTS, CTS, DATA ...
//
// Which one is for the [Net] to say ([Limits]). Where memory cannot be moved the
// message is Packed after all. A rank that sends more than is received is told to
// announce even what is short (THROTTLE).
//
// Messages of a rank are matched in the order they were sent in, whatever ways
// their packets took; package match says what matching is.
//
// # Trust
//
// A packet that does not fit what is under way is an [ErrProtocol] that says what
// it was, and should be the end of the rank. What is kept for a rank is bounded.
//
// Once a rank is lost nothing waits for it. Memory that the net still has, because
// it was given to Fetch or Store, comes back by [Core.TransferDone] and not before.
//
// docs/mpi-protocol.md has the states and the reasons.
package protocol
