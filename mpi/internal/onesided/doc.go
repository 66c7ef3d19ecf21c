// Package onesided implements the one-sided communication of a rank: windows, their epochs and
// locks, and operations on the memory of other ranks (MPI 4.1, chapter 12).
//
//	t := onesided.NewTable(onesided.Config{Engine: e, Direct: true})
//	core.Handler, core.OnPeerFailed = t.HandlePacket, t.OnRankLost
//	w, err := t.CreateWindow(&comm, memory, alltoall)     // all ranks
//	err = w.LockRank(onesided.Exclusive, 1, false)
//	put := onesided.NewPut(buffer, place)
//	err = w.StartOperation(&put, 1, nil)                  // starts
//	err = w.UnlockRank(1)                                 // waits: complete at rank 1
//	freed, err := t.FreeWindow(w)                         // all ranks
//
// Package mpi wraps windows in handles with the calls of the standard, and adds the call and the
// rank to their errors. The engine's lock guards windows.
//
// # How a Put travels
//
//	origin                                                 target
//
//	StartOperation      operation.go
//	   | arguments, epoch (epoch.go), region
//	   | (region.go; lookup.go in a dynamic window)
//	   v
//	startCopy           copy.go, transfer.go
//	   |
//	   +-- one block, or long ones ----- RDMA WRITE -----> memory
//	   |
//	   +-- long, without RDMA: a packet Send ------------> serveMessage  serve.go
//	   |                       and a message ------------> memory
//	   v
//	enqueueTransfer     send.go
//	   | elements.go divides it, sendqueue.go limits
//	   | the packets in flight
//	   +-- packets Put ----------------------------------> handlePacket  receive.go
//	                                                          v
//	handleAck           send.go  <---------- Ack --------- serveAccess   serve.go: memory
//	   v
//	waitUntil           wait.go: flush.go, fence.go, pscw.go and lock.go wait for completion
//
// A Get takes the same ways with RDMA READ, a packet Fetch, or packets Get and Reply. An
// accumulate (accumulate.go) uses an atomic of the adapter or packets. The packets are listed at
// packetType (packet.go).
//
// # Synchronization
//
// Fence is a dissemination barrier of signals; Post, Start, Complete and Wait exchange signals
// between the ranks of their groups. The lock of a rank is a ticket lock of three words that the
// others change by atomics (lockwords.go), so its program need not take part:
//
//	LockRank    FETCH-ADD 1 of the next ticket, read the turn
//	            turn != ticket: read the turn again, with exponential backoff
//	UnlockRank  FETCH-ADD 1 of the turn, behind the RDMA WRITEs of the epoch
//
// The loss of a rank breaks a window at all its ranks (liveness.go): calls that wait return
// protocol.ErrLost, and later ones except Free fail.
//
// docs/mpi-onesided.md describes the design and its reasons.
package onesided
