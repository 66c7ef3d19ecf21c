package envelope

import "fmt"

// Kind says what a packet is for.
type Kind uint8

const (
	Eager    Kind = iota + 1 // a whole message
	Ready                    // ready to send: a message that is fetched, or asked for (RTS)
	Clear                    // clear to send: the receiver of a message is there (CTS)
	Data                     // a part of a message that was asked for
	Finish                   // the memory of a message has been read, or written (FIN)
	Matched                  // a synchronous send has met its receive
	Active                   // for a handler: one-sided communication
	Throttle                 // whether messages are to be announced, however short
	Hello                    // the first packet of a connection, from its client
	Credit                   // nothing but credits
	Bye                      // the last packet of a connection
	last
)

var names = [...]string{"", "EAGER", "RTS", "CTS", "DATA", "FIN", "MATCHED", "ACTIVE", "THROTTLE", "HELLO", "CREDIT", "BYE"}

func (k Kind) String() string {
	if k == 0 || k >= last {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k]
}

// Ordered reports whether packets of a kind are dealt with in the order they
// were sent in, on whatever ways they came. Header.Seq counts them.
func (k Kind) Ordered() bool { return k == Eager || k == Ready || k == Active }

// Flags modify a packet.
type Flags uint8

const (
	// Synchronous asks for Matched when an Eager message meets its receive.
	Synchronous Flags = 1 << iota
	// Copied says that a Ready message cannot be fetched: it waits for Clear,
	// and comes in packets.
	Copied
	// Place says of Ready that the message waits for Clear, and can be written
	// to memory; of Clear that it names memory that the message shall be
	// written to.
	Place
	known = Synchronous | Copied | Place

	// ShortSignature are the bits that hold Header.Signature of a Synchronous
	// Eager message.
	ShortSignature Flags = 0xf8
)

// allowed are the flags that a kind may have. An Active packet's are its
// handler's.
var allowed = [last]Flags{Eager: Synchronous | ShortSignature, Ready: Copied | Place, Clear: Place, Active: known}
