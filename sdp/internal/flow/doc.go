// Package flow has the three flow controls of SDP that Balaji, Bhagvat, Panda,
// Thakur and Gropp compare in "Advanced Flow-control Mechanisms for the Sockets
// Direct Protocol over InfiniBand" (ANL/MCS-P1422-0507), without I/O: bytes and
// completions come in, messages to post come out.
//
//	          send buffer, N x S bytes             receive buffer, N x S bytes
//	Write -> [ slot | slot | slot ... ]  SEND  ->  [ slot | slot | slot ... ] -> Read      Credit, section 3
//	Write -> [ posted |  held back    ]  WRITE ->  [ packed bytes | free    ] -> Read      RDMA, section 4
//	Write -> [ NIC-handled | software ]  WRITE ->  [ packed bytes | windows ] -> Read      NIC, section 5
//
// A [Sender] takes bytes and says which message to post next; a [Receiver] is
// told what arrived where and gives the bytes out:
//
//	n := s.Write(p)                      // less than len(p): the send buffer is full
//	for m, ok := s.Next(); ok; m, ok = s.Next() {
//		post(m)                          // a SEND, or an RDMA WRITE with immediate to m.Remote
//	}
//	s.Done(m.Pos + uint64(m.Len))        // when a message with m.Signal has completed
//
// WRITE with immediate data is what lets the sender choose the place: messages
// of any size lie back to back in the peer's buffer. What holds a sender back
// differs: messages at the peer's (Credit), free bytes there that the peer's
// software reports (RDMA), or the adapter itself, which has no receive to send
// to until the peer's software has posted one (NIC).
//
// A ring may be replaced by a longer one in the middle of the stream: Change at
// the receiver, Switch at the sender, which says so to the receiver's Switch. And
// what lies in the ring of the NIC design may be moved out of it to let in what
// is behind: Spill.
//
// Nothing here has a lock, and a connection has one of each kind.
package flow
