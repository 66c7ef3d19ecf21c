// Package nack implements a reliable message protocol over unreliable datagrams
// (UD) with negative acknowledgements (NACK). Packets have sequence numbers, the
// receiver requests missing packets, and the sender buffers packets for
// retransmission. It generalizes the "reliability mechanism" of the direct
// all-to-all over UD in "On using Connection-Oriented vs. Connection-Less
// Transport" (PPoPP '07), section 4.3.
//
// A [Core] is one end of the protocol, with any number of peers. It is sans-IO: it
// has no socket, clock, lock or goroutine.
//
//	c := nack.New(nack.Options{Self: 3, Peers: 1000, Epoch: epoch, MTU: 4096})
//	c.OpenPeer(now, 7, nack.Peer{Epoch: theirs})    // permits packets to peer 7
//	err := c.Send(now, 7, head, body)               // copies the message; ErrWouldBlock: retry after Writable
//	drop := c.HandlePacket(now, 7, packet, deliver) // a received packet; deliver gets the messages
//	n := c.Drain(now, packets)                      // packets to send
//	c.ReleaseSlot(packets[i].Slot)                  // after a packet was sent
//	at := c.Deadline()                              // time of the next Advance
//	for e, ok := c.NextEvent(); ok; e, ok = c.NextEvent() {} // events of peers
//
// Messages of a peer arrive complete, exactly once and in order, or the peer
// fails, which an [Event] reports.
//
// # Packets
//
//	 0    1    2    3   4      8       12   16    20    24      28     32
//	+----+----+----+---+------+-------+----+-----+-----+-------+------+-----------------+
//	| N  |kind|flag| 0 | from | epoch | to | seq | ack | order | echo | length, or have |
//	+----+----+----+---+------+-------+----+-----+-----+-------+------+-----------------+
//
// All numbers are big-endian. [Header] describes the fields. Kinds:
//
//	DATA    seq is its sequence number, length that of the message; payload follows
//	ACK     all before ack received, and the packets after ack in the bitmap sack
//	NACK    the same, and packets are missing
//	PROBE   all before seq has been sent; requests an ACK or NACK
//	HELLO   requests the epoch of the peer
//
// docs/ud-messages.md specifies the protocol.
package nack
