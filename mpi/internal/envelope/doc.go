// Package envelope has the packets that ranks of an MPI job send one another:
// a header of 40 bytes and a payload.
//
//	h := envelope.Header{Kind: envelope.Eager, Context: 4, Tag: 7, Length: 5, Bytes: 5, Source: 1}
//	h.Put(b)                          // and behind it the payload
//	err := h.Get(b)                   // at the other end; ErrMalformed says what is wrong
//
// All numbers are little-endian:
//
//	 0   4   8       16      24   28   32   36   38   39
//	+---+---+-------+-------+----+----+----+----+----+----+
//	|ctx|tag|length |  id   |src |byts|seq |cred|flag|kind|
//	+---+---+-------+-------+----+----+----+----+----+----+
//
// What a packet may be:
//
//	kind      flags            payload     who sends it
//	EAGER     SYNCHRONOUS      message     sender of a short message
//	          and 5 bits of its Signature
//	RTS       none             key         sender of a long one, to be fetched
//	RTS       COPIED, PLACE    signature   the same, to be asked for
//	CTS       PLACE or none    key         receiver, to ask for it
//	DATA                       part        sender
//	FIN                        none        who has read, or written
//	MATCHED                    none        receiver of a synchronous message
//	ACTIVE    its handler's    its own     one-sided communication
//	THROTTLE                   none        receiver with too much that nobody receives
//	HELLO, CREDIT, BYE         carrier's   who carries packets
//
// Package protocol says how they play together.
package envelope
