package sdp

import (
	"context"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// QueuePair is what peers are told.
func (c *PacketConn) QueuePair() (qpn, qkey uint32) { return c.qp.Num(), c.qkey }

// SetMaxPeers changes the bound on what is kept of peers.
func (c *PacketConn) SetMaxPeers(n int) {
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	c.peers.limit = n
}

// Peers is how many peers are kept.
func (c *PacketConn) Peers() int {
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	return len(c.peers.byAddr)
}

// AgePeers makes all that is known of peers as old as makes it asked anew.
func (c *PacketConn) AgePeers() {
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	for _, p := range c.peers.byAddr {
		p.answeredAt = time.Now().Add(-peerTime - time.Second)
	}
}

// SetReturnTime changes how long peers may take to give back memory.
func (s *Stack) SetReturnTime(d time.Duration) { s.returnTime = d }

// SetAcceptTime changes how long the handshake of a connection that comes in may take.
func (s *Stack) SetAcceptTime(d time.Duration) { s.acceptTime = d }

// UDPPort is that of the stack's adapter.
func (s *Stack) UDPPort() uint16 { return s.cm.Addr().Port() }

// ListenPort listens on a port with a backlog.
func (s *Stack) ListenPort(port uint16, backlog int) (*Listener, error) {
	return s.listenPort(port, backlog)
}

// DialAddr dials an address with the options of d.
func (s *Stack) DialAddr(ctx context.Context, to netip.AddrPort, d Dialer) (*Conn, error) {
	return s.dialAddr(ctx, to, d)
}

// ListenPacketPort returns a PacketConn on a port.
func (s *Stack) ListenPacketPort(port uint16) (*PacketConn, error) { return s.listenPacketPort(port) }

// Resolve is what Dial makes of an address.
func (s *Stack) Resolve(ctx context.Context, network, address string) (netip.AddrPort, error) {
	return s.resolveDialAddr(ctx, network, address)
}

// AdapterCounts is whether the connection's queue pair has end-to-end credits.
func (c *Conn) AdapterCounts() bool {
	_, init := c.qp.Query()
	return !init.NoCredits
}

// Looks is how many of them make the time of a keepalive.
const Looks = keepAliveSamples

// NewVigil is what a keepalive's looks at the completions tell: whether to ask.
func NewVigil() (look func(heard uint32) (ask bool)) { return new(silenceDetector).sample }

// WatchedEvery is the time between the looks of a connection's keepalive, 0 if it has none.
func (c *Conn) WatchedEvery() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keepAliveTimer == nil {
		return 0
	}
	return c.silence.interval
}

// counted is a completion queue that counts what is taken back of it, and the looks.
type counted struct {
	verbs.CQ
	disarms, polls int
}

func (c *counted) Poll(wcs []verbs.WC) (int, error) {
	c.polls++
	return c.CQ.Poll(wcs)
}

func (c *counted) Disarm() {
	c.disarms++
	c.CQ.Disarm()
}

// CountDisarms returns whether the connection is looked after by events, and how often
// a call has done without them since this was first called.
func (c *Conn) CountDisarms() (armed bool, disarms int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cq, ok := c.cq.(*counted)
	if !ok {
		cq = &counted{CQ: c.cq}
		c.cq = cq
	}
	return c.armed, cq.disarms
}

// Ahead makes the writer seem faster than the reader, or not, and returns how often the
// connection looks while f runs.
func (c *Conn) Ahead(is bool, f func()) (looks int) {
	c.CountDisarms()
	c.mu.Lock()
	c.extraPolls = 0
	if is {
		c.extraPolls = maxExtraPolls
	}
	cq := c.cq.(*counted)
	before := cq.polls
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	return cq.polls - before
}

// IsAhead is whether it seems so now.
func (c *Conn) IsAhead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.extraPolls > 0
}

// Await polls until there are n bytes to be read, or none will come.
func (c *Conn) Await(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.core.Buffered() < n {
		k, err := c.cq.Poll(c.wcs[:])
		if err != nil {
			return err
		}
		c.handleCompletions(c.wcs[:k])
	}
	return nil
}

// HoldBack writes until something of it is held back, and then lets something happen that
// may see to that, while no completion is handled. It returns what was held before and is
// behind.
func (c *Conn) HoldBack(f func(c *Conn)) (before, after int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.core.HeldBytes() == 0 {
		c.core.Write(make([]byte, 4000)) // so that bytes are what is short, not requests
		c.postPending()
	}
	before = c.core.HeldBytes()
	f(c)
	return before, c.core.HeldBytes()
}

// Heard is how many completions the connection has handled, and whether a call waits
// for more.
func (c *Conn) Heard() (n uint64, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.completions, c.polling
}

// Interrupt is what the adapter calls for the connection's event, while f runs
// under one of the locks that it needs, or none: of the stack, of the connection.
func (c *Conn) Interrupt(ofStack, ofConn bool) (served bool) {
	if ofStack {
		c.stack.mu.Lock()
		defer c.stack.mu.Unlock()
	}
	if ofConn {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	return c.stack.handleInterrupt(c.cq)
}

// What may see to what is held back.
var (
	// Event is the next completion, while no call is there.
	Event = (*Conn).handleEvent
	// WaitToRead is a Read that waits, but not for long.
	WaitToRead = func(c *Conn) {
		over := newDeadline()
		over.set(time.Now().Add(-time.Second))
		c.waitFor(waitReadable, over)
	}
	// WaitWhileWriting is one beside a Write.
	WaitWhileWriting = func(c *Conn) {
		c.writing.Lock()
		defer c.writing.Unlock()
		WaitToRead(c)
	}
)

// HandOver is what the patrol does, and whether that was the last time for now.
func (c *Conn) HandOver() bool { return c.handOverToEvents() }

// LookedAfter is whether an event or the patrol looks after the connection.
func (c *Conn) LookedAfter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.armed || c.onIdleList
}

// AckTimeout returns the acknowledgement timeout of the connection's queue pair.
func (c *Conn) AckTimeout() uint8 {
	attr, _ := c.qp.Query()
	return attr.Timeout
}
