package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// Memory is a registered region.
type Memory struct {
	Bytes      []byte
	Addr       uint64
	LKey, RKey uint32
}

// SGE names a part of the region.
func (m *Memory) SGE(off, n int) verbs.SGE {
	return verbs.SGE{Addr: m.Addr + uint64(off), Length: uint32(n), LKey: m.LKey}
}

// Config is what an end of a connection is made of.
type Config struct {
	FlowControl  flow.Control // that is asked for
	Buffers      int          // N
	BufferBytes  int          // S, of data
	InitialBytes int          // bytes that are used of each N x S until that is not enough; 0 for all
	Window       int          // W, the virtual window of the NIC design
	Queue        int          // messages with data in the adapter at a time
	Receives     int          // receives at a time, at most
	MaxAdverts   uint8        // zero-copy advertisements that we take at a time

	// MaxBufferBytes is up to which S the peer may have ours enlarged, with
	// Credit: see Resize. Not more than BufferBytes means not at all.
	MaxBufferBytes int

	noExtension bool // the peer's Hello has no extension, and our HelloAck will not either

	Send  Memory // N slots of S bytes and a header
	Ring  Memory // the first bytes of N x S, which the peer writes to; none with Credit: see RingBytes
	Slots Memory // receives: see SlotBytes
}

// The sizes of what a connection posts.
const (
	smallSlotBytes = 64 // a receive for a message without data
	ControlQueue   = 32 // messages other than data in the send queue at a time
	MaxInline      = 64 // bytes of an inline message, at most
)

func (c *Config) slotBytes() int    { return c.BufferBytes + bsdh.HeaderBytes }
func (c *Config) ringCapacity() int { return c.Buffers * c.BufferBytes }

// SendBytes, RingBytes and SlotBytes are how much memory a connection needs.
// Much of it is never touched.
func (c *Config) SendBytes() int { return c.Buffers * c.slotBytes() }

// RingBytes is the size of the receive ring at first: it becomes longer when that is
// not enough. See [Core.RingWanted].
func (c *Config) RingBytes() int {
	if c.FlowControl == flow.Credit {
		return 0
	}
	return c.initialRing() + c.RingSlack()
}

// initialRing is how many bytes a ring is to hold at first: at least two windows.
func (c *Config) initialRing() int {
	if c.InitialBytes == 0 {
		return c.ringCapacity()
	}
	return min(c.ringCapacity(), max(c.InitialBytes, 2*c.Window))
}

// RingSlack is how much longer than the bytes that it is to hold a receive ring is: see
// [flow.NICReceiver].
func (c *Config) RingSlack() int {
	if c.FlowControl == flow.NIC {
		return c.Window
	}
	return 0
}

// SlotBytes is the size of the receives: those of the standard, and behind
// them small ones.
func (c *Config) SlotBytes() int { return c.largeReceives()*c.slotBytes() + c.Receives*smallSlotBytes }

// largeReceives is how many receives have room for data: the standard's N, and some for
// messages that have no data but need a receive. Two for data are the least with
// which words about receives need no answer (see words).
func (c *Config) largeReceives() int { return max(c.Buffers, 2) + flow.ReservedCredits }

// SendQueue is the depth of the send queue.
func (c *Config) SendQueue() int { return c.Queue + ControlQueue + 8 }

// ReceiveQueue is the depth of the receive queue.
func (c *Config) ReceiveQueue() int { return c.largeReceives() + c.Receives }

// initialReceives is how many receives are posted before the design is known.
func (c *Config) initialReceives() int {
	switch c.FlowControl {
	case flow.Credit:
		return c.largeReceives()
	case flow.NIC:
		return min(c.Buffers, c.initialRing()/c.Window)
	}
	return min(c.Buffers, c.Receives)
}

// WithControl is the configuration with another design, and a window that fits it.
func (c Config) WithControl(d flow.Control) Config {
	c.FlowControl = d
	c.Window = max(1, min(c.Window, c.ringCapacity()/2)) // that of another design was not looked at
	return c
}

// Validate says what is wrong with a configuration.
func (c *Config) Validate() error {
	switch {
	case c.FlowControl > flow.Credit:
		return fmt.Errorf("flow control %v: it is nic, rdma or credit", c.FlowControl)
	case c.Buffers < 1 || c.Buffers > 1<<14:
		return fmt.Errorf("%d buffers: 1 to 16384", c.Buffers)
	case c.BufferBytes < 64 || c.BufferBytes > 1<<24:
		return fmt.Errorf("buffers of %d bytes: 64 to 16777216", c.BufferBytes)
	case c.ringCapacity() > 1<<30:
		return fmt.Errorf("%d buffers of %d bytes: together at most 1073741824", c.Buffers, c.BufferBytes)
	case c.FlowControl == flow.NIC && (c.Window < 1 || 2*c.Window > c.ringCapacity()):
		return fmt.Errorf("a window of %d bytes: 1 to %d, half of all buffers", c.Window, c.ringCapacity()/2)
	case c.Queue < 4 || c.Receives < 8:
		return fmt.Errorf("%d sends and %d receives: at least 4 and 8", c.Queue, c.Receives)
	case c.InitialBytes < 0:
		return fmt.Errorf("%d bytes at first: not less than none", c.InitialBytes)
	case c.Receives > 1<<15:
		return fmt.Errorf("%d receives: at most 32768", c.Receives)
	}
	return nil
}

// Peer is what the negotiation has found out about the other end.
type Peer struct {
	FlowControl flow.Control // of this connection
	Bufs        uint16       // receives that it has posted
	BufferBytes uint32       // size of its receive buffers, with the header
	MaxAdverts  uint8
	Ring        uint32 // size of its ring
	Window      uint32
	Addr        uint64 // of its ring
	RKey        uint32
	Buffer      uint64 // size of its send buffer, if it has a ring
	Dialed      bool   // it sent the Hello, we the HelloAck
	Brief       bool   // with Credit: its Data messages and ours may have their header in immediate data
}
