package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// A Memory is a registered memory region.
type Memory struct {
	Bytes      []byte
	Addr       uint64
	LKey, RKey uint32
}

// SGE returns a scatter/gather element for n bytes at offset off.
func (m *Memory) SGE(off, n int) verbs.SGE {
	return verbs.SGE{Addr: m.Addr + uint64(off), Length: uint32(n), LKey: m.LKey}
}

// Config configures one side of a connection.
type Config struct {
	FlowControl  flow.Control // requested mode
	Buffers      int          // N
	BufferBytes  int          // S, bytes of data
	InitialBytes int          // initial length of each ring of N x S bytes; 0 means all
	Window       int          // W, the virtual window with NIC
	Queue        int          // maximum number of data messages in flight
	Receives     int          // maximum number of posted receives
	MaxAdverts   uint8        // accepted zero-copy advertisements at a time

	// MaxBufferBytes is the largest S that the peer may request with Credit; see GrantResize. A
	// value of at most BufferBytes disables resizing.
	MaxBufferBytes int

	noExtension bool // the peer's Hello has no extension, so the HelloAck has none

	Send  Memory // N slots of S bytes and a header
	Ring  Memory // initial ring for the peer's writes; unused with Credit; see RingBytes
	Slots Memory // receive buffers; see SlotBytes
}

// Sizes of posted work.
const (
	smallSlotBytes = 64 // bytes of a receive for messages without data
	ControlQueue   = 32 // maximum number of control messages in the send queue
	MaxInline      = 64 // maximum bytes of an inline message
)

// MaxTransfer is the maximum length of an RDMA operation, and of memory lent for one, in bytes.
const MaxTransfer = 1 << 30

func (c *Config) slotBytes() int { return c.BufferBytes + bsdh.HeaderBytes }

func (c *Config) ringCapacity() int { return c.Buffers * c.BufferBytes }

// SendBytes returns the size of Send in bytes. Most of it may never be touched.
func (c *Config) SendBytes() int { return c.Buffers * c.slotBytes() }

// RingBytes returns the initial size of Ring in bytes. A ring that is too short is replaced by a
// longer one; see [Core.RingWanted].
func (c *Config) RingBytes() int {
	if c.FlowControl == flow.Credit {
		return 0
	}
	return c.initialRing() + c.RingSlack()
}

// initialRing returns the initial capacity of a ring in bytes, at least two windows.
func (c *Config) initialRing() int {
	if c.InitialBytes == 0 {
		return c.ringCapacity()
	}
	return min(c.ringCapacity(), max(c.InitialBytes, 2*c.Window))
}

// RingSlack returns the number of bytes of a receive ring beyond its capacity; see
// [flow.NICReceiver].
func (c *Config) RingSlack() int {
	if c.FlowControl == flow.NIC {
		return c.Window
	}
	return 0
}

// SlotBytes returns the size of Slots in bytes: large receives followed by small ones.
func (c *Config) SlotBytes() int { return c.largeReceives()*c.slotBytes() + c.Receives*smallSlotBytes }

// largeReceives returns the number of receives with space for data: N, at least 2, plus the
// reserve for control messages. With fewer than 2, a credit update would require a reply (see
// advertisedReceives).
func (c *Config) largeReceives() int { return max(c.Buffers, 2) + flow.ReservedCredits }

// SendQueue returns the depth of the send queue.
func (c *Config) SendQueue() int { return c.Queue + ControlQueue + 8 }

// ReceiveQueue returns the depth of the receive queue.
func (c *Config) ReceiveQueue() int { return c.largeReceives() + c.Receives }

// initialReceives returns the number of receives posted before the flow control mode is
// negotiated.
func (c *Config) initialReceives() int {
	switch c.FlowControl {
	case flow.Credit:
		return c.largeReceives()
	case flow.NIC:
		return min(c.Buffers, c.initialRing()/c.Window)
	}
	return min(c.Buffers, c.Receives)
}

// WithControl returns the configuration with another flow control mode and a valid window.
func (c Config) WithControl(d flow.Control) Config {
	c.FlowControl = d
	c.Window = max(1, min(c.Window, c.ringCapacity()/2)) // unchecked with other modes
	return c
}

// Validate returns an error that describes the first invalid field, or nil.
func (c *Config) Validate() error {
	switch {
	case c.FlowControl > flow.Credit:
		return fmt.Errorf("FlowControl: %v is none of nic, rdma and credit", c.FlowControl)
	case c.Buffers < 1 || c.Buffers > 1<<14:
		return rangeError("Buffers", c.Buffers, 1, 1<<14)
	case c.BufferBytes < 64 || c.BufferBytes > 1<<24:
		return rangeError("BufferBytes", c.BufferBytes, 64, 1<<24)
	case c.ringCapacity() > 1<<30:
		return fmt.Errorf("Buffers: %d of %d bytes are more than %d bytes", c.Buffers, c.BufferBytes, 1<<30)
	case c.FlowControl == flow.NIC && (c.Window < 1 || 2*c.Window > c.ringCapacity()):
		return fmt.Errorf("%w, half of all buffers", rangeError("Window", c.Window, 1, c.ringCapacity()/2))
	case c.Queue < 4 || c.Queue > 1<<15:
		return rangeError("Queue", c.Queue, 4, 1<<15)
	case c.Receives < 8 || c.Receives > 1<<15:
		return rangeError("Receives", c.Receives, 8, 1<<15)
	case c.InitialBytes < 0:
		return fmt.Errorf("InitialBytes: %d is negative", c.InitialBytes)
	}
	return nil
}

// rangeError returns the error of an option that is out of range.
func rangeError(name string, value, low, high int) error {
	return fmt.Errorf("%s: %d out of range [%d, %d]", name, value, low, high)
}

// A Peer holds the negotiated parameters of the remote side.
type Peer struct {
	FlowControl  flow.Control // negotiated mode
	Bufs         uint16       // posted receives
	BufferBytes  uint32       // size of its receive buffers, including the header
	MaxAdverts   uint8
	Ring         uint32 // bytes of its ring
	Window       uint32
	Addr         uint64 // of its ring
	RKey         uint32
	Buffer       uint64 // bytes of its send buffer, if it has a ring
	Dialed       bool   // the peer sent the Hello, the local side the HelloAck
	ShortHeaders bool   // with Credit: Data messages of both sides may carry their header as immediate data
}
