package flow

import (
	"errors"
	"math"
)

// Message is one message of data for the adapter to send.
type Message struct {
	Pos       uint64 // of its first byte among all that went through the send buffer
	Len       int    // bytes
	Local     int    // offset in the send buffer
	Remote    int    // offset in the peer's ring; Credit has none
	Signal    bool   // its completion is to be reported by Done
	Unhurried bool   // and is in no hurry: twice as many may be under way
}

// End is the position behind the message's last byte.
func (m *Message) End() uint64 { return m.Pos + uint64(m.Len) }

// MaxPos is a position behind all messages.
const MaxPos uint64 = math.MaxUint64

// Sender is the sending half of a flow control.
type Sender interface {
	// Write copies what there is room for into the send buffer and returns
	// how much that was.
	Write(p []byte) int

	// EndMessage makes the last byte that was written the last of a message, and
	// returns the position behind it. Who cuts again before that message is
	// posted moves the cut.
	EndMessage() uint64

	// Next returns the next message to post, and false if there is none that
	// may be posted now. Who has taken it posts it.
	Next() (Message, bool)

	// CompleteUpTo says that the messages before a position have been sent: their part of the
	// send buffer is free. At Everything it says so of all that Next has returned.
	CompleteUpTo(pos uint64)

	// Free is how many bytes Write would take now.
	Free() int

	// Unposted is how many bytes Next has not returned yet.
	Unposted() int

	// Unsent is how many bytes have been written and not reported by Done.
	Unsent() int
}

// Receiver is the receiving half of a flow control. It is told what has arrived
// by [CreditReceiver.Deliver] or by a [RingReceiver]'s Arrived.
type Receiver interface {
	// Read copies out the next bytes.
	Read(p []byte) int

	// Buffered is how many bytes wait to be read.
	Buffered() int

	// Receives is how many receives should be posted at the peer's disposal.
	Receives() int
}

// RingReceiver is the receiving half of a design with a ring.
type RingReceiver interface {
	Receiver

	// Deliver takes note of n bytes at an offset of the ring. It is ErrOverrun
	// or ErrMisplaced if a peer who keeps to the rules cannot have written
	// them.
	Deliver(at, n int) error

	// ChangeRing prepares another ring, which is at least as long. It is false if
	// that is not so, or the last change has not ended.
	ChangeRing(mem []byte) bool

	// HalfFull is true while more than half of the ring is full.
	HalfFull() bool

	// SwitchRing says that all that arrives from now on is in the ring of Change.
	// It is false if there is none.
	SwitchRing() bool

	// ChangingRing is true from Change on until all that was in the ring before
	// has been read: that one's memory is not used any more.
	ChangingRing() bool
}

// What a peer did who does not keep to the rules.
var (
	ErrOverrun   = errors.New("the peer sent more than there is room for")
	ErrMisplaced = errors.New("the peer wrote to another place than where its last message ended")
)
