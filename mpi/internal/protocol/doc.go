// Package protocol implements MPI point-to-point communication (MPI 4.1, chapter 3) as
// a state machine without I/O: calls of the program and packets of other ranks are its
// input, calls of a [Net] its output. It also starts RMA transfers (put, get and
// atomics).
//
//	c := protocol.New(rank, size)
//	c.Attach(net)
//	c.Receive(&in)                            // in.Envelope: source, tag; in.Buf: destination
//	c.Send(&out)                              // out.Done: Buf may be reused
//	err := c.HandlePacket(from, &h, payload)  // may complete in
//	c.TransferDone(transferID, nil)           // an RDMA READ or WRITE has completed
//	c.Resume(to)                              // the net can send to a rank again
//	c.FailPeer(rank, why)                     // a rank is unreachable
//
// No call blocks: a call starts an operation and returns, and [Request] reports its
// completion. Core has no lock; the caller serializes all calls.
//
// # Message protocols
//
//	eager             EAGER                                 done when sent
//	synchronous       EAGER, MATCHED                        with Request.Sync
//	RendezvousRead    RTS, RDMA READ by the receiver, FIN
//	RendezvousWrite   RTS, CTS, RDMA WRITE by the sender, FIN
//	RendezvousCopy    RTS, CTS, DATA ...
//
// The [Net] selects the protocol ([Limits]). A message whose memory cannot be
// registered falls back to RendezvousCopy. A receiver whose unexpected messages exceed
// a watermark sends THROTTLE: the sender then uses a rendezvous for short messages too.
//
// Messages of a rank are matched in the order they were sent, whatever routes their
// packets took. Package match implements the matching rules.
//
// # Trust
//
// A packet that does not fit the state of its request is an [ErrProtocol] with the
// details; the caller should disconnect the rank. The memory used per rank is bounded.
//
// After FailPeer no request waits for the rank. Memory that the net still owns, because
// it was passed to RDMARead or RDMAWrite, is returned by [Core.TransferDone] and not
// before.
//
// docs/mpi-protocol.md describes the states and the reasons.
package protocol
