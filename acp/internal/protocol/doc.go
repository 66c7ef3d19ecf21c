// Package protocol is what ranks of ACP agree on, without I/O, lock or clock:
// what a global address is, what a directory says of memory, how operations are made of a
// compare-and-swap that the adapter does not have, and how the two ends of a channel
// share a ring of slots and find each other.
//
//	ga := protocol.Make(rank, region, offset)    // 8 bytes, for any rank
//
//	s := protocol.NewSender(slotSize, sendSlots) // after connecting: s.Connect(receiveSlots)
//	for seg, ok := s.Next(len(message), false); ok; seg, ok = s.Next(len(message), false) {
//		...                                      // copy seg's bytes into the slot, put the slot
//	}
//
//	r := protocol.NewReceiver(slotSize, receiveSlots)
//	err := r.Come(tail)                          // what the sender has written
//	piece, err := r.Take(slot)                   // of the message at hand
//
// Ring and connecting are those of "Evaluation of On-Demand Message-Passing Module
// over RDMA Network" (Nanri, Soga; "the ACP paper"), section III.
package protocol
