package envelope

import "fmt"

// A Kind is the type of a packet.
type Kind uint8

const (
	Eager    Kind = iota + 1 // a complete message
	RTS                      // ready to send: announces a message
	CTS                      // clear to send: the receive is matched
	Data                     // a segment of a message, after CTS
	FIN                      // the message was read or written by RDMA
	Matched                  // a synchronous send is matched
	Active                   // for a handler: RMA
	Throttle                 // whether to send RTS for all messages
	Hello                    // first packet of a connection, from its client
	Credit                   // returns credits only
	Bye                      // last packet of a connection
	kindEnd
)

var kindNames = [...]string{"", "EAGER", "RTS", "CTS", "DATA", "FIN", "MATCHED", "ACTIVE", "THROTTLE", "HELLO", "CREDIT", "BYE"}

// String implements fmt.Stringer.
func (k Kind) String() string {
	if k == 0 || k >= kindEnd {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Ordered reports whether packets of a kind are handled in the order of sending, on
// whatever routes they arrive. Header.Seq numbers them.
func (k Kind) Ordered() bool { return k == Eager || k == RTS || k == Active }

// Flags modify a packet.
type Flags uint8

const (
	// Synchronous asks for Matched when an Eager message is matched.
	Synchronous Flags = 1 << iota
	// ByCopy says that the message of an RTS cannot be read by RDMA: it waits for CTS
	// and is sent in DATA packets.
	ByCopy
	// ByWrite says of RTS that the message waits for CTS and can be written by RDMA; of
	// CTS that its key is the memory to write to.
	ByWrite
	allFlags = Synchronous | ByCopy | ByWrite

	// ShortSignature is the mask of the bits that hold Header.Signature of a
	// Synchronous Eager message.
	ShortSignature Flags = 0xf8
)

// allowedFlags are the flags that a kind may have. The flags of Active are its
// handler's.
var allowedFlags = [kindEnd]Flags{Eager: Synchronous | ShortSignature, RTS: ByCopy | ByWrite, CTS: ByWrite, Active: allFlags}
