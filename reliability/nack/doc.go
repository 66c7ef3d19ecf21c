// Package nack makes messages between many peers reliable that travel as
// datagrams: over UD, where no connection remembers anything. A packet has a
// number, the receiver asks again for what is missing (NACK), and the sender keeps
// what may be asked for. This is the "reliability mechanism" of the direct
// all-to-all over UD in "On using Connection-Oriented vs. Connection-Less Transport"
// (PPoPP '07), section 4.3, made for any messages.
//
// A [Core] is one end: it talks to any number of peers, and has no I/O, clock,
// lock or goroutine.
//
//	c := nack.New(nack.Options{Self: 3, Peers: 1000, Epoch: epoch, MTU: 4096})
//	c.Open(now, 7, nack.Peer{Epoch: theirs})        // where peer 7 is is known now
//	err := c.Send(now, 7, head, body)               // copied; ErrNoRoom says: later
//	drop := c.Handle(now, 7, packet, deliver)       // one has come; deliver gets messages
//	n := c.Drain(now, packets)                      // these are to leave
//	c.Done(packets[i].Slot)                         // one has left, its bytes are ours again
//	at := c.Deadline()                              // call Advance then
//	for e, ok := c.Next(); ok; e, ok = c.Next() {}  // what has become of peers
//
// Messages of a peer arrive whole, once and in order, or the peer is lost, which
// an [Event] tells.
//
// # Packets
//
//	 0    1    2    3   4      8       12   16    20    24      28     32
//	+----+----+----+---+------+-------+----+-----+-----+-------+------+-----------------+
//	| N  |kind|flag| 0 | from | epoch | to | seq | ack | order | echo | length, or have |
//	+----+----+----+---+------+-------+----+-----+-----+-------+------+-----------------+
//
// All numbers are big-endian; [Header] says what they mean. Kinds:
//
//	DATA    seq is its number; behind length (of the whole message) its payload
//	ACK     ack: all before has come, and what bits of have say behind it
//	NACK    the same, and something is missing
//	ASK     everything before seq has been sent: what has come?
//	HELLO   who are you?
//
// docs/ud-messages.md has the rules and the reasons.
package nack
