package sdp

import (
	"context"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// QueuePair returns the address that peers get.
func (c *PacketConn) QueuePair() (qpn, qkey uint32) { return c.qp.Num(), c.qkey }

// SetMaxPeers changes the maximum number of cached peers.
func (c *PacketConn) SetMaxPeers(n int) {
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	c.peers.limit = n
}

// Peers returns the number of cached peers.
func (c *PacketConn) Peers() int {
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	return len(c.peers.byAddr)
}

// AgePeers makes all cached peers old enough to be queried again.
func (c *PacketConn) AgePeers() {
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	for _, p := range c.peers.byAddr {
		p.answeredAt = time.Now().Add(-peerTime - time.Second)
	}
}

// SetReturnTime changes the time in which peers must return memory.
func (s *Stack) SetReturnTime(d time.Duration) { s.returnTime = d }

// SetAcceptTime changes the timeout of handshakes of accepted connections.
func (s *Stack) SetAcceptTime(d time.Duration) { s.acceptTime = d }

// Drain is the part of Shutdown that waits for the closed connections.
func (s *Stack) Drain(ctx context.Context) error { return s.drain(ctx) }

// UDPPort returns the port of the stack's adapter.
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

// Resolve returns the result of resolving an address of Dial.
func (s *Stack) Resolve(ctx context.Context, network, address string) (netip.AddrPort, error) {
	return resolveDialAddr(ctx, s.ownAddr(), network, address)
}

// AdapterCounts reports whether the connection's queue pair has end-to-end credits.
func (c *Conn) AdapterCounts() bool {
	_, init := c.qp.Query()
	return !init.NoCredits
}

// Looks is the number of samples in the time of a keepalive.
const Looks = keepAliveSamples

// NewVigil returns the function that samples the completions of a keepalive and reports whether to
// probe.
func NewVigil() (look func(heard uint32) (ask bool)) { return new(silenceDetector).sample }

// WatchedEvery returns the interval between the samples of a connection's keepalive, 0 if it has
// none.
func (c *Conn) WatchedEvery() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keepAliveTimer == nil {
		return 0
	}
	return c.silence.interval
}

// counted is a completion queue that counts disarmed events and polls.
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

// CountDisarms returns whether the connection is driven by events, and how often a call has
// disarmed them since the first call of CountDisarms.
func (c *Conn) CountDisarms() (armed bool, disarms int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cq, ok := c.cq.(*counted)
	if !ok {
		cq = &counted{CQ: c.cq}
		c.cq, c.arrived.CQ = cq, cq
	}
	return c.armed, cq.disarms
}

// Ahead makes the writer appear faster than the reader, or not, and returns the number of polls of
// the connection while f runs.
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

// IsAhead reports whether it appears so now.
func (c *Conn) IsAhead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.extraPolls > 0
}

// Await polls until n bytes can be read, or none will arrive.
func (c *Conn) Await(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.core.Buffered() < n {
		if _, err := c.arrived.Poll(c.handleCompletions); err != nil {
			return err
		}
	}
	return nil
}

// HoldBack writes until data is deferred, and then runs a function that may send it, while no
// completion is handled. It returns the deferred data before and after.
func (c *Conn) HoldBack(f func(c *Conn)) (before, after int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.core.HeldBytes() == 0 {
		c.core.Write(make([]byte, 4000)) // so that bytes are short, not requests
		c.postPending()
	}
	before = c.core.HeldBytes()
	f(c)
	return before, c.core.HeldBytes()
}

// Heard returns the number of completions that the connection has handled, and whether a call waits
// for more.
func (c *Conn) Heard() (n uint64, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.completions, c.progress.Leading()
}

// Interrupt handles the connection's event as the adapter does, while f runs with one of the
// required locks held, or none: of the stack, or of the connection.
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

// The ways to send deferred data.
var (
	// Event handles the next completion while no call is active.
	Event = (*Conn).handleEvent
	// WaitToRead is a Read that waits briefly.
	WaitToRead = func(c *Conn) {
		over := newDeadline()
		over.set(time.Now().Add(-time.Second))
		c.waitReadable(over)
	}
	// WaitWhileWriting is a waiting Read beside a Write.
	WaitWhileWriting = func(c *Conn) {
		c.writing.Lock()
		defer c.writing.Unlock()
		WaitToRead(c)
	}
)

// HandOver runs the idle poller once, and reports whether it is done for now.
func (c *Conn) HandOver() bool { return c.handOverToEvents() }

// LookedAfter reports whether an event or the idle poller serves the connection.
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

// UntilSample returns the time until the next sample of a keepalive with an interval.
func UntilSample(interval time.Duration, now time.Time) time.Duration {
	return (&silenceDetector{interval: interval}).untilSample(now)
}
