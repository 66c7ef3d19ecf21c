package memory

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// DefaultDelay is the default of Options.Delay. Without a delay two ends could
// exchange packets forever without time passing.
const DefaultDelay = time.Microsecond

// DefaultMTU is the interface MTU when Options leaves it at zero: that of
// Linux's loopback.
const DefaultMTU = 65536

// maxQueue keeps the transmission time of a full queue within an int64.
const maxQueue = 1 << 30

// Options describes the port that an adapter is attached to. The zero value of
// every field is the default.
type Options struct {
	NoGSO bool // datagrams leave one by one, all with IPv4 identification 0
	NoGRO bool // datagrams arrive one by one, although they left as a group

	// RecvBuffer is the size of the receive buffer in bytes, as of a socket;
	// datagrams that do not fit are dropped and counted in
	// link.Stats.ReceiveOverflow. An empty buffer takes any datagram.
	RecvBuffer int // bytes; 0 for link.DefaultRecvBuffer

	// MTU of the interface: larger IP packets are dropped and counted in the
	// sender's link.Stats.SendTooBig.
	MTU int // bytes; 0 for DefaultMTU

	// The following describe the wire that ends at this port, and need the
	// virtual clock of a Network.

	Delay time.Duration // travel time of every datagram to here; 0 for DefaultDelay
	Rate  int64         // bits a second, IP headers counted; 0 for no limit
	Queue int           // bytes of IP packets that may be on or wait for a wire with a Rate; 0 for no limit

	// MarkAbove makes the wire mark ECN-capable packets that arrive when more bytes of IP
	// packets are on or wait for it. Datagrams arrive one by one then. 0 marks none.
	MarkAbove int

	// Timing, if not nil, has the times that the adapter at this port takes.
	Timing Timing
}

// A Timing is the model of an adapter on a Network. Its methods do not call the Network, except
// Now.
type Timing interface {
	// DepartAt returns the time at which a datagram or group of packets of seg bytes, which the
	// adapter sends now, leaves the port: now or later.
	DepartAt(to *wire.Path, buf []byte, seg int) int64

	// ArriveAt returns the time at which a datagram, of which the last byte comes from the wire
	// now, is in the receive buffer: now or later. Datagrams must not overtake others.
	ArriveAt(buf []byte, seg int) int64

	// OnQueued is called after a datagram has been put into the receive buffer.
	OnQueued()
}

// validate checks the options and fills in the defaults.
func (o *Options) validate(addr netip.AddrPort) error {
	ip := addr.Addr()
	switch {
	case !ip.IsValid() || ip.IsUnspecified() || ip.IsMulticast():
		return fmt.Errorf("memory: cannot attach to %v; want a definite unicast IP address and a port", addr)
	case o.RecvBuffer < 0 || o.MTU < 0 || o.Delay < 0 || o.Rate < 0 || o.Queue < 0 || o.MarkAbove < 0:
		return fmt.Errorf("memory: %v: negative option in %+v", addr, *o)
	case o.Queue > maxQueue:
		return fmt.Errorf("memory: %v: Queue %d; want at most %d bytes", addr, o.Queue, maxQueue)
	case o.MarkAbove > maxQueue:
		return fmt.Errorf("memory: %v: MarkAbove %d; want at most %d bytes", addr, o.MarkAbove, maxQueue)
	case o.MarkAbove > 0 && o.Rate == 0:
		return fmt.Errorf("memory: %v: MarkAbove %d without a Rate; nothing waits for a wire without a limit", addr, o.MarkAbove)
	case o.Queue > 0 && o.Rate == 0:
		return fmt.Errorf("memory: %v: Queue %d without a Rate; nothing waits for a wire without a limit", addr, o.Queue)
	}
	if o.RecvBuffer == 0 {
		o.RecvBuffer = link.DefaultRecvBuffer
	}
	if o.MTU == 0 {
		o.MTU = DefaultMTU
	}
	if o.Delay == 0 {
		o.Delay = DefaultDelay
	}
	return nil
}

// needsVirtualClock reports whether an option is set that only Network
// supports.
func (o *Options) needsVirtualClock() bool {
	return o.Delay != 0 || o.Rate != 0 || o.Queue != 0 || o.MarkAbove != 0 || o.Timing != nil
}
