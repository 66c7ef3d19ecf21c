// Package rdma carries the packets of ranks over reliable connections of an
// adapter, in the ways of "Design and implementation of MPI over iWARP"
// (Narravula, Mamidala, Vishnu, Santhanaraman, Panda; "the iWARP paper").
//
//	f, err := rdma.New(dev, host, book, rdma.Options{}) // a fabric.Fabric
//
// # Packets
//
//   - SR: a packet is a SEND to the receives that all connections share
//     (a shared receive queue). There are few at first; the queue's limit event
//     adds more, until there is one for every packet that could come.
//   - R, the fast path: a packet is an RDMA WRITE to a slot of a ring that the
//     receiver polls, header last (section 3.3). Options.Fast switches it on;
//     it is for jobs with a core for every rank.
//   - Short packets in a row leave together, and so do short transfers.
//
// On either way a rank may have Options.Credits packets under way to another
// that it has not dealt with; credits come back in the headers of packets, or
// in a packet of their own when half of them are owed.
//
// Longer messages travel as protocol.Scheme says, by RDMA READ or WRITE from
// and to the program's memory. Registrations are kept (and memory with them)
// until 64 others, or 256 MiB, have been used since. With Options.Rails they are read
// over several queue pairs at once (multi-rail). One-sided transfers of at most
// a packet, from memory that is not registered, go in the work request or through
// a send buffer, and atomics do, too.
//
// # Connections
//
// They are made when a rank is first sent to, or all at once, by the rules of
// section 3: the lower rank is the server, the higher one asks it to be
// connected, the nearest rank first; the first packet is the client's. A lower
// rank that has something to say asks the higher one to come, by a SIDR
// request whose answer means no more than that it was heard. REQ and REP carry
// job, rank and where the ring is.
package rdma
