package shm

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// A lateSocket is a link that delivers as many datagrams as it may.
type lateSocket struct {
	link.Conn
	may   int
	loses bool // the others
}

func (s *lateSocket) ReadBatch(r *link.Datagrams) (int, error) {
	if s.loses {
		_, err := s.Conn.ReadBatch(r)
		r.Reset()
		return 0, err
	}
	if s.may == 0 {
		r.Reset()
		return 0, nil
	}
	n, err := s.Conn.ReadBatch(r)
	s.may -= n
	return n, err
}

// newLateRing returns two links. The first has sent 10 packets through the socket, one by one, and then 10 through a
// ring. The second has not read yet.
func newLateRing(t *testing.T) (a, b *conn, socket *lateSocket) {
	t.Helper()
	a, b = openLink(t), openLink(t)
	socket = &lateSocket{Conn: b.Conn}
	b.Conn = socket
	a.destinations[b.local] = &destination{addr: b.local, rings: []*outgoing{{retryAt: time.Now().Add(time.Hour)}}}
	for i := range 10 {
		sendPackets(t, a, b, i, 1, 64)
	}
	require.Equal(t, "udp", a.Route(b.local, 5))
	a.destinations[b.local].rings[0].retryAt = time.Time{}
	sendPackets(t, a, b, 10, 10, 64)
	require.Equal(t, "shm", a.Route(b.local, 5))
	setReadBy(t, b, time.Now().Add(time.Hour))
	return a, b, socket
}

// setReadBy sets the time at which a ring is read in any case.
func setReadBy(t *testing.T, c *conn, at time.Time) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	require.Len(t, c.joining, 1)
	c.joining[0].readBy = at
}

// readNothing reads some times, and finds nothing.
func readNothing(t *testing.T, c *conn) {
	t.Helper()
	r := link.NewDatagrams(1)
	for range 2 * idleSocket {
		n, err := c.ReadBatch(r)
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

// TestLateRing reads packets that were sent through the socket before those of a ring that comes later, although the
// system delivers them late, and goes on with the ring. Packets of an earlier process do not matter.
func TestLateRing(t *testing.T) {
	a, b, socket := newLateRing(t)
	for i := range 10 {
		readNothing(t, b)
		ok, longest := b.beginSleep()
		require.True(t, ok)
		require.Positive(t, longest)
		socket.may = 1
		receivePackets(t, b, a, i, 1, 64)
	}
	receivePackets(t, b, a, 10, 10, 64)
	require.Equal(t, uint64(10), b.Stats().SharedReceivedPackets)
	require.Zero(t, b.Stats().SharedLate)
	ok, longest := b.beginSleep()
	require.True(t, ok)
	require.Zero(t, longest)
	b.endSleep(false)

	a.dropRing(a.destinations[b.local], a.destinations[b.local].rings[0])
	a.destinations[b.local].rings[0].retryAt = time.Time{}
	sendPackets(t, a, b, 20, 10, 64)
	receivePackets(t, b, a, 20, 10, 64)
	require.Zero(t, b.Stats().SharedLate)
}

// TestLostBeforeRing reads a ring after a while although packets through the socket before it were lost, counts
// that, and reads the next ring at once.
func TestLostBeforeRing(t *testing.T) {
	a, b, socket := newLateRing(t)
	socket.may = 3
	receivePackets(t, b, a, 0, 3, 64)
	socket.loses = true
	readNothing(t, b)
	setReadBy(t, b, time.Time{})
	receivePackets(t, b, a, 10, 10, 64)
	require.Equal(t, uint64(1), b.Stats().SharedLate)

	a.dropRing(a.destinations[b.local], a.destinations[b.local].rings[0])
	a.destinations[b.local].rings[0].retryAt = time.Time{}
	sendPackets(t, a, b, 20, 10, 64)
	setReadBy(t, b, time.Now().Add(time.Hour))
	receivePackets(t, b, a, 20, 10, 64)
	require.Equal(t, uint64(1), b.Stats().SharedLate)
}

// TestGoneBeforeRing goes on without a ring whose producer has given up before it was read.
func TestGoneBeforeRing(t *testing.T) {
	a, b, socket := newLateRing(t)
	receiveAll := func(first, count int) {
		socket.may = count
		receivePackets(t, b, a, first, count, 64)
	}
	setReadBy(t, b, time.Now().Add(time.Hour)) // synchronizes with the handshake
	in := b.joining[0]
	in.ring.wordAt(0).Store(0) // as if the handshake had taken too long
	a.dropRing(a.destinations[b.local], a.destinations[b.local].rings[0])
	require.Eventually(t, in.peer.gone.Load, 20*time.Second, time.Millisecond)
	sendPackets(t, a, b, 10, 1, 64)
	receiveAll(0, 11)
	require.Empty(t, b.joining)
	a.destinations[b.local].rings[0].retryAt = time.Time{}
	sendPackets(t, a, b, 11, 1, 64)
	setReadBy(t, b, time.Now().Add(time.Hour))
	receivePackets(t, b, a, 11, 1, 64)
	require.Equal(t, uint64(1), b.Stats().SharedReceivedPackets)
	require.Zero(t, b.Stats().SharedLate)
}

// TestCountEarlier counts the packets through the socket for the links to which they have gone, or knows that it cannot.
func TestCountEarlier(t *testing.T) {
	dst := netip.MustParseAddrPort("127.9.9.9:9")
	for name, x := range map[string]struct {
		d      destination
		slot   bool
		n      int64
		shards int

		sharded bool
	}{
		"nothing":               {shards: 1},
		"unknown shards":        {d: destination{early: 3, earlyGSI: 4}, n: 12, shards: 1},
		"known shards":          {d: destination{shards: 3}, n: 5, shards: 3},
		"then more":             {d: destination{shards: 3, early: 1}, n: 6, shards: 1},
		"slot":                  {d: destination{shards: bySlot, earlyGSI: 2}, slot: true, n: 5, shards: 1},
		"unknown slot":          {d: destination{early: 2}, slot: true, n: countUnknown, shards: 1},
		"shards of the sender":  {sharded: true, d: destination{shards: 1}, n: countUnknown, shards: 1},
		"unknown, then nothing": {d: destination{}, n: 5, shards: 1},
	} {
		x.d.addr = dst
		o := &outgoing{bySocket: 5}
		if name == "nothing" {
			o.bySocket = 0
		}
		n, shards := (&conn{sharded: x.sharded}).countEarlier(&x.d, o, x.slot)
		require.Equal(t, []int64{x.n, int64(x.shards)}, []int64{n, int64(shards)}, name)
	}
	l := &listener{conns: make([]*conn, 3)}
	for text, want := range map[string]int64{"7 3": 7, "7 1": countUnknown, "0 1": 0, "-1 3": countUnknown} {
		r, err := l.parseRequest(version + "1 127.0.0.1:4791 " + text)
		require.NoError(t, err)
		require.Equal(t, want, r.earlier, text)
	}
}

// TestManySources bounds the memory for the counts of packets by source.
func TestManySources(t *testing.T) {
	c := &conn{}
	r := link.NewDatagrams(1)
	for i := range 3 * maxSources {
		r.Reset()
		r.Add(link.Datagram{Src: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(i)), Buf: make([]byte, wire.MinPacketLen)})
		c.countSources(r)
		c.countSources(r)
		require.EqualValues(t, 2, *c.bySocket[r.Msgs()[0].Src])
	}
	require.LessOrEqual(t, len(c.bySocket), maxSources)
}
