// Package envelope defines the packets that the ranks of an MPI job exchange: a header
// of 40 bytes and a payload.
//
//	h := envelope.Header{Kind: envelope.Eager, Context: 4, Tag: 7, Length: 5, Bytes: 5, Source: 1}
//	h.MarshalTo(b)                    // the payload follows
//	err := h.Unmarshal(b)             // at the receiver; wraps ErrMalformed
//
// All numbers are little-endian:
//
//	 0   4   8       16      24   28   32   36   38   39
//	+---+---+-------+-------+----+----+----+----+----+----+
//	|ctx|tag|length |  id   |src |byts|seq |cred|flag|kind|
//	+---+---+-------+-------+----+----+----+----+----+----+
//
// The kinds of packets:
//
//	kind      flags            payload     sender
//	EAGER     SYNCHRONOUS      message     sender of a short message
//	          and 5 bits of its Signature
//	RTS       none             key         sender of a long message, for an RDMA READ
//	RTS       COPY, WRITE      signature   sender of a long message, waits for CTS
//	CTS       WRITE or none    key         receiver, asks for the message
//	DATA                       segment     sender
//	FIN                        none        the rank that read or wrote the message
//	MATCHED                    none        receiver of a synchronous message
//	ACTIVE    of the handler   its own     RMA
//	THROTTLE                   none        receiver with too many unexpected messages
//	HELLO, CREDIT, BYE         fabric's    fabric
//
// Package protocol defines the message exchanges.
package envelope
