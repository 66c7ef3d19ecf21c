// Package tcp carries the packets of ranks over TCP, as a baseline for RDMA ("MPI over
// TCP" of the iWARP paper) and for networks without RDMA.
//
//	f, err := tcp.New(host, book, tcp.Options{}) // a fabric.Fabric
//
// A connection to each rank is made on first use, by the higher rank of the two.
// Packets are sent in the calling goroutine as far as the socket buffer permits; a
// writer goroutine sends the rest. Another goroutine reads. Messages longer than
// Options.Eager use a rendezvous, and are sent in packets of that size.
//
// RDMA is emulated by frames between the packets. The reader goroutine executes them at
// the target, as an adapter would, so that the target program can compute meanwhile.
package tcp
