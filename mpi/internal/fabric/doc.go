// Package fabric is what carries the packets of ranks, as package engine sees
// it. There are four:
//
//	mpi/internal/fabric/rdma   reliable connections: SEND, or the RDMA fast path; longer messages by RDMA
//	mpi/internal/fabric/ud     one queue pair for datagrams to all ranks
//	mpi/internal/fabric/hybrid connections to some ranks, datagrams to the others
//	mpi/internal/fabric/tcp    sockets, for comparison
//
// A Fabric implements protocol.Net, so it sends packets in order or says that
// there is no room, and it hands what comes to the Core of its Host. Its
// methods are called with the engine's lock held; goroutines of its own (who
// make connections, who read sockets) take that by Host.Do. Block alone is
// called without: it is where the rank waits.
//
// Ranks find each other in a Book, which a process manager is (package pmi).
package fabric
