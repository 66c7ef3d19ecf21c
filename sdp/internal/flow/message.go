package flow

import (
	"errors"
	"math"
)

// A Message is a data message for the adapter to send.
type Message struct {
	Pos      uint64 // position of its first byte in the stream
	Len      int    // length in bytes
	Local    int    // offset in the send buffer
	Remote   int    // offset in the peer's ring; unused with Credit
	Signal   bool   // request a signaled completion, for CompleteUpTo
	DelayAck bool   // the adapter may delay it: many more messages may be in flight
}

// End returns the position after the message's last byte.
func (m *Message) End() uint64 { return m.Pos + uint64(m.Len) }

// MaxPos is a position after all messages.
const MaxPos uint64 = math.MaxUint64

// A Sender is the sending half of a flow control mode.
type Sender interface {
	// Write copies as much of p as fits into the send buffer and returns the number of bytes
	// copied.
	Write(p []byte) int

	// EndMessage makes the last written byte the last byte of a message, and returns the position
	// after it. A later call before that message is posted moves the boundary.
	EndMessage() uint64

	// Next returns the next message, which the caller must post, or false if no message may be
	// posted now.
	Next() (Message, bool)

	// CompleteUpTo reports that the messages before pos have been sent, which frees their part of
	// the send buffer. MaxPos completes all messages that Next has returned.
	CompleteUpTo(pos uint64)

	// Free returns the number of bytes that Write would accept.
	Free() int

	// Unposted returns the number of written bytes that Next has not returned.
	Unposted() int

	// Unsent returns the number of written bytes that are not completed.
	Unsent() int
}

// A Receiver is the receiving half of a flow control mode. Messages arrive by
// [CreditReceiver.Deliver] or [RingReceiver.Deliver].
type Receiver interface {
	// Read copies the next bytes to p and returns their number.
	Read(p []byte) int

	// Buffered returns the number of unread bytes.
	Buffered() int

	// Receives returns the number of receives that should be posted.
	Receives() int
}

// A RingReceiver is the receiving half of a mode with a receive ring.
type RingReceiver interface {
	Receiver

	// Deliver records n bytes at offset at of the ring. It returns ErrOverrun or ErrMisplaced if
	// the peer violated the protocol.
	Deliver(at, n int) error

	// ChangeRing prepares a replacement of the ring. It returns false if mem is shorter than the
	// ring or the last change is incomplete.
	ChangeRing(mem []byte) bool

	// HalfFull reports whether more than half of the ring is in use.
	HalfFull() bool

	// SwitchRing makes the ring of ChangeRing the one that all later data arrives in. It returns
	// false if no change is prepared.
	SwitchRing() bool

	// ChangingRing reports whether a change is incomplete: from ChangeRing until all data in the
	// old ring has been read. Then the old ring's memory is unused.
	ChangingRing() bool
}

// Protocol violations by the peer.
var (
	ErrOverrun   = errors.New("flow: message exceeds the free receive buffer")
	ErrMisplaced = errors.New("flow: ring write not contiguous with the last message")
)
