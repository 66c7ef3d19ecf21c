// Package fabric defines the transports of an MPI job for package engine. There are
// four:
//
//	mpi/internal/fabric/rdma   reliable connections: SEND, or the RDMA fast path; longer messages by RDMA
//	mpi/internal/fabric/ud     one UD queue pair for datagrams to all ranks
//	mpi/internal/fabric/hybrid connections to some ranks, datagrams to the others
//	mpi/internal/fabric/tcp    TCP sockets, as a baseline
//
// A Fabric implements protocol.Net: it sends packets in order or reports that it has no
// room, and passes received packets to the Core of its Host. Its methods are called
// with the engine's lock held; its own goroutines, which make connections or read
// sockets, acquire the lock by Host.DoLocked. Block is called without the lock: the rank
// waits there.
//
// Ranks exchange addresses through a Book, which a process manager implements (package
// pmi).
package fabric
