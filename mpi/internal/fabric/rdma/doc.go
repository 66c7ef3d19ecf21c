// Package rdma carries the packets of ranks over reliable connections of an adapter, as
// in "Design and implementation of MPI over iWARP" (Narravula, Mamidala, Vishnu,
// Santhanaraman, Panda; "the iWARP paper").
//
//	f, err := rdma.New(dev, host, book, rdma.Options{}) // a fabric.Fabric
//
// # Packets
//
//   - SR: a packet is a SEND to a shared receive queue of all connections. The queue
//     starts small; its limit event adds receives, up to one for every packet in
//     flight.
//   - R, the fast path: a packet is an RDMA WRITE to a slot of a ring that the receiver
//     polls, header last (section 3.3). Options.Fast enables it, for jobs with a core
//     per rank.
//   - Consecutive short packets are coalesced, and consecutive short transfers are
//     posted together.
//
// In both cases flow control is by credits: a rank has at most Options.Credits packets
// in flight to another that the other has not handled. Credits return in the headers of
// packets, or in a packet of their own when half of them are unreturned.
//
// Options.Flow replaces the shared receive queue, to compare flow controls (flow.go).
// FlowCredit gives each connection receives of its own and does not coalesce. FlowRDMA
// and FlowNIC send packets as a stream of bytes into a ring of the peer (stream.go,
// streamrecv.go), by the rules of package flow.
//
// Longer messages use the rendezvous of protocol.Scheme, by RDMA READ or WRITE of the
// program's memory. Registrations are cached (and keep the memory alive) until 64
// others, or 256 MiB, have been used since. With Options.Rails, reads are striped over
// several queue pairs (multi-rail). RMA transfers of at most a packet from unregistered
// memory are sent inline or through a send buffer; so are atomics.
//
// # Connections
//
// Connections are made on first use, or all at once, by the rules of section 3: the
// lower rank is the server; the higher one connects, to the nearest rank first, and the
// first packet is the client's. A lower rank with data to send asks the higher one to
// connect by a SIDR request, whose reply only acknowledges it. REQ and REP carry the
// job, the rank, the flow control and the address of the ring.
package rdma
