package flow

import "errors"

// Message is one message of data for the adapter to send.
type Message struct {
	Pos    uint64 // of its first byte among all that went through the send buffer
	Len    int    // bytes
	Local  int    // offset in the send buffer
	Remote int    // offset in the peer's ring; Credit has none
	Signal bool   // its completion is to be reported by Done
}

// Sender is the sending half of a flow control.
type Sender interface {
	// Write copies what there is room for into the send buffer and returns
	// how much that was.
	Write(p []byte) int

	// Next returns the next message to post, and false if there is none that
	// may be posted now. Who has taken it posts it.
	Next() (Message, bool)

	// Done says that the messages before a position have been sent: their part of the
	// send buffer is free.
	Done(pos uint64)

	// Room is how many bytes Write would take now.
	Room() int

	// Unposted is how many bytes Next has not returned yet.
	Unposted() int

	// Unsent is how many bytes have been written and not reported by Done.
	Unsent() int
}

// Receiver is the receiving half of a flow control.
type Receiver interface {
	// Arrived takes note of a message of n bytes. Of a ring, at is the offset
	// in it; of Credit, the slot. It is ErrOverrun or ErrMisplaced if a peer
	// who keeps to the rules cannot have sent it.
	Arrived(at, n int) error

	// Read copies out the next bytes.
	Read(p []byte) int

	// Buffered is how many bytes wait to be read.
	Buffered() int

	// Receives is how many receives should be posted at the peer's disposal.
	Receives() int
}

// What a peer did who does not keep to the rules.
var (
	ErrOverrun   = errors.New("the peer sent more than there is room for")
	ErrMisplaced = errors.New("the peer wrote to another place than where its last message ended")
)
