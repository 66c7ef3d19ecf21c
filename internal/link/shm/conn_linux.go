package shm

import (
	"errors"
	"net/netip"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/link"
)

// A waker is a link whose Wait ends when its descriptor is written (eventfd(2)).
type waker interface{ WakeFD() int }

// conn is a link that sends to some addresses through rings.
type conn struct {
	link.Conn
	local   netip.AddrPort
	shared  bool // other processes have the address, too
	sharded bool // other links of the adapter have it
	wakeFD  int
	names   *listener // of the first link of an adapter, else nil
	closed  atomic.Bool

	writer
	reader
}

// Wrap returns links that exchange packets with other wrapped links of this user on this host through
// shared memory. The arguments are the links of an adapter by shard, or one link at an address that
// several adapters share, with the slot of this one; slot is -1 for an address of its own. slotOf
// returns the slot of a queue pair number at a shared address. Wrap returns the links as they are
// where rings are not possible.
func Wrap(inner []link.Conn, slot int, slotOf func(qpn uint32) int) []link.Conn {
	conns := make([]*conn, len(inner))
	wrapped := make([]link.Conn, len(inner))
	for i, c := range inner {
		w, ok := c.(waker)
		if !ok {
			return inner
		}
		conns[i] = &conn{Conn: c, local: c.LocalAddr(), shared: slot >= 0, sharded: len(inner) > 1, wakeFD: w.WakeFD()}
		conns[i].destinations, conns[i].slotOf = map[netip.AddrPort]*destination{}, slotOf
		wrapped[i] = conns[i]
	}
	names, err := listenAt(conns[0].local, slot, conns)
	if err != nil {
		return inner
	}
	conns[0].names = names
	go names.serveHandshakes()
	return wrapped
}

// Unwrap returns the link of the socket.
func (c *conn) Unwrap() link.Conn { return c.Conn }

// Caps implements link.Conn.
func (c *conn) Caps() link.Caps {
	caps := c.Conn.Caps()
	caps.Name += "+shm"
	return caps
}

// Stats returns the counters of the socket and of the rings together, and those of the rings.
func (c *conn) Stats() link.Stats {
	s := link.StatsOf(c.Conn)
	c.writeMu.Lock()
	s.SharedSentPackets += c.sent.packets
	s.SharedSentBytes += c.sent.bytes
	s.SharedLost += c.lost
	c.writeMu.Unlock()
	c.readMu.Lock()
	s.SharedReceivedPackets += c.received.packets
	s.SharedReceivedBytes += c.received.bytes
	s.SharedLate += c.lateRings
	c.readMu.Unlock()
	s.SentPackets += s.SharedSentPackets
	s.SentBytes += s.SharedSentBytes
	s.ReceivedPackets += s.SharedReceivedPackets
	s.ReceivedBytes += s.SharedReceivedBytes
	return s
}

// Route returns the name of the way to the link with an address and a queue pair.
func (c *conn) Route(dst netip.AddrPort, qpn uint32) string {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if d := c.destinations[dst]; d != nil {
		if i := c.ringIndex(d, qpn); i >= 0 && i < len(d.rings) && d.rings[i] != nil && d.rings[i].peer != nil {
			return "shm"
		}
	}
	return "udp"
}

// traffic counts packets.
type traffic struct{ packets, bytes uint64 }

func (t *traffic) add(packets, bytes int) {
	t.packets += uint64(packets)
	t.bytes += uint64(bytes)
}

// Close implements link.Conn.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return c.Conn.Close()
	}
	if c.names != nil {
		c.names.closeSocket()
	}
	err := c.Conn.Close()
	c.writeMu.Lock()
	for _, d := range c.destinations {
		for _, o := range d.rings {
			if o != nil && o.peer != nil {
				o.peer.closeRing()
			}
		}
	}
	clear(c.destinations)
	c.last = nil
	c.writeMu.Unlock()
	c.readMu.Lock()
	c.closeIncoming()
	c.readMu.Unlock()
	return err
}

// errClosed is the reason why a link takes no ring.
var errClosed = errors.New("shm: the link is closed")
