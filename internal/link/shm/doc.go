// Package shm moves packets between two adapters of one user on one host through shared memory
// instead of a socket: the same packets, BTH to ICRC, in records of up to a GSO group.
//
// Each direction between two adapters has a ring, in anonymous memory (memfd_create(2)) that the
// producer makes, seals against a change of its size, and passes to the consumer through a Unix
// socket. The name of that socket in the abstract namespace is the adapter's address, so that an
// address of another network namespace is not found. The two processes must have the same user.
//
//	Wrap(link.Conn)
//	   WriteBatch   groups to an address with a ring go there, all others to the link
//	   ReadBatch    reads the rings, and the link now and then
//	   Wait         blocks in the link; a producer writes the eventfd of a consumer that sleeps
//
// A consumer trusts nothing in the ring: it loads the word of a record once and checks it. Its
// datagrams are unstable (link.Datagram): the adapter copies headers before it parses them, and
// payload once, into place. They have no ICRC unless the sender needs one. A peer that writes
// elsewhere in the ring, stops, or dies costs packets, which the transport retransmits or reports.
package shm
