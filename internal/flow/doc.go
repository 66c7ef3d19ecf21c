// Package flow implements the three flow control modes that Balaji, Bhagvat, Panda,
// Thakur and Gropp compare in "Advanced Flow-control Mechanisms for the Sockets Direct Protocol
// over InfiniBand" (ANL/MCS-P1422-0507), without I/O: bytes and completions are its inputs,
// messages to post its outputs. Section numbers in comments refer to that paper.
//
//	          send buffer, N x S bytes             receive buffer, N x S bytes
//	Write -> [ slot | slot | slot ... ]  SEND  ->  [ slot | slot | slot ... ] -> Read      Credit, section 3
//	Write -> [ posted |  held back    ]  WRITE ->  [ packed bytes | free    ] -> Read      RDMA, section 4
//	Write -> [ NIC-handled | software ]  WRITE ->  [ packed bytes | windows ] -> Read      NIC, section 5
//
// A [Sender] buffers bytes and decides which message to post next. A [Receiver] records arrived
// data and returns it in order:
//
//	n := s.Write(p)                      // less than len(p): the send buffer is full
//	for m, ok := s.Next(); ok; m, ok = s.Next() {
//		post(m)                          // a SEND, or an RDMA WRITE with immediate to m.Remote
//	}
//	s.CompleteUpTo(m.End())              // when a message with m.Signal has completed
//
// With WRITE with immediate data the sender chooses the destination, so messages of any length
// are packed back to back in the peer's buffer. The modes differ in the backpressure: the number
// of posted receives (Credit), the free bytes that the peer's software reports (RDMA), or the
// adapter itself, which holds a message until the peer's software has posted a receive (NIC).
//
// A ring can be replaced by a longer one in the middle of the stream, with ChangeRing and
// SwitchRing of the receiver and SwitchRing of the sender. Spill moves unread data out of a ring
// in NIC mode, to let in the data behind it.
//
// Nothing here is safe for concurrent use. A connection has one Sender and one Receiver.
package flow
