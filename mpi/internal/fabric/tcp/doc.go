// Package tcp carries the packets of ranks over TCP: what MPI is without an
// RDMA adapter, for comparison ("MPI over TCP" of the iWARP paper) and where
// nothing else passes.
//
//	f, err := tcp.New(host, book, tcp.Options{}) // a fabric.Fabric
//
// A connection to each rank is made when it is first needed, by the higher of
// the two. Packets leave in the call that sends them as far as the system takes
// them; the rest leaves from a goroutine. Another one reads. Longer messages
// than Options.Eager are asked for, and follow in packets of that size.
//
// Memory of other ranks is read, written and changed by atomics in frames that go
// between the packets. The goroutine that reads does at the other end what an
// adapter would do, so its program can compute meanwhile.
package tcp
