package flow

import (
	"errors"
	"fmt"
	"math"

	"github.com/softrnic/softrnic/internal/spelling"
)

// A Control is a flow control mode. The zero value is the default, NIC.
type Control uint8

// Flow control modes.
const (
	NIC    Control = iota // virtual window and end-to-end credits of the adapter (section 5)
	RDMA                  // ring at the peer, managed by the sender (section 4)
	Credit                // one credit per message (section 3)
)

var controlNames = [...]string{NIC: "nic", RDMA: "rdma", Credit: "credit"}

// String returns the name used in command lines: "nic", "rdma" or "credit".
func (d Control) String() string {
	if int(d) < len(controlNames) {
		return controlNames[d]
	}
	return fmt.Sprintf("FlowControl(%d)", uint8(d))
}

// ParseControl returns the mode with the given name, the inverse of String.
func ParseControl(name string) (Control, error) {
	for d, n := range controlNames {
		if n == name {
			return Control(d), nil
		}
	}
	return 0, fmt.Errorf("flow control %q: want nic, rdma or credit%s", name, spelling.Hint(name, controlNames[:]...))
}

// MarshalText implements encoding.TextMarshaler.
func (d Control) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Control) UnmarshalText(text []byte) (err error) {
	*d, err = ParseControl(string(text))
	return err
}

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

// ErrOverrun reports a message that the peer was not allowed to send.
var ErrOverrun = errors.New("flow: message exceeds the free receive buffer")
