package envelope

import "fmt"

// Kind says what a packet is for.
type Kind uint8

const (
	Eager    Kind = iota + 1 // a whole message
	RTS                      // ready to send: a message that is fetched, or asked for (RTS)
	CTS                      // clear to send: the receiver of a message is there (CTS)
	Data                     // a part of a message that was asked for
	FIN                      // the memory of a message has been read, or written (FIN)
	Matched                  // a synchronous send has met its receive
	Active                   // for a handler: one-sided communication
	Throttle                 // whether messages are to be announced, however short
	Hello                    // the first packet of a connection, from its client
	Credit                   // nothing but credits
	Bye                      // the last packet of a connection
	kindEnd
)

var kindNames = [...]string{"", "EAGER", "RTS", "CTS", "DATA", "FIN", "MATCHED", "ACTIVE", "THROTTLE", "HELLO", "CREDIT", "BYE"}

func (k Kind) String() string {
	if k == 0 || k >= kindEnd {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Ordered reports whether packets of a kind are dealt with in the order they
// were sent in, on whatever ways they came. Header.Seq counts them.
func (k Kind) Ordered() bool { return k == Eager || k == RTS || k == Active }

// Flags modify a packet.
type Flags uint8

const (
	// Synchronous asks for Matched when an Eager message meets its receive.
	Synchronous Flags = 1 << iota
	// ByCopy says that a Ready message cannot be fetched: it waits for Clear,
	// and comes in packets.
	ByCopy
	// ByWrite says of Ready that the message waits for Clear, and can be written
	// to memory; of Clear that it names memory that the message shall be
	// written to.
	ByWrite
	allFlags = Synchronous | ByCopy | ByWrite

	// ShortSignature are the bits that hold Header.Signature of a Synchronous
	// Eager message.
	ShortSignature Flags = 0xf8
)

// allowedFlags are the flags that a kind may have. An Active packet's are its
// handler's.
var allowedFlags = [kindEnd]Flags{Eager: Synchronous | ShortSignature, RTS: ByCopy | ByWrite, CTS: ByWrite, Active: allFlags}
