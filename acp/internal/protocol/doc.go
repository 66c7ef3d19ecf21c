// Package protocol is the protocol between ranks of ACP, without I/O, locks or clocks: global addresses,
// directory entries, atomics made of compare-and-swap, and the ring of slots and the handshake of channels.
//
//	ga := protocol.Make(rank, region, offset)    // 8 bytes, for any rank
//
//	s := protocol.NewSender(slotSize, sendSlots) // after connecting: s.Connect(receiveSlots)
//	for seg, ok := s.NextSegment(len(message), false); ok; seg, ok = s.NextSegment(len(message), false) {
//		...                                      // copy seg's data into the slot, write the slot
//	}
//
//	r := protocol.NewReceiver(slotSize, receiveSlots)
//	err := r.SetTail(tail)                       // the mirrored tail
//	fragment := r.TakeSlot(slot)                 // part of the current message
//
// The ring and the handshake are those of section III of "Evaluation of On-Demand Message-Passing Module over
// RDMA Network" (Nanri, Soga; "the ACP paper").
package protocol
