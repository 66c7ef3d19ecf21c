package broker

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/wire"
)

// TestMain checks that no goroutine remains.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testAddr returns an address of this process.
func testAddr(n byte) netip.AddrPort { return ownaddr.Device(70 + n) }

// joinApart joins an address as another process would: with a group of its own.
func joinApart(t *testing.T, addr netip.AddrPort) *Member {
	t.Helper()
	groups.mu.Lock()
	list := groups.list
	groups.list = nil
	groups.mu.Unlock()
	m, err := Join(addr)
	require.NoError(t, err)
	groups.mu.Lock()
	groups.list = list
	groups.mu.Unlock()
	return m
}

// sendTo sends a packet to a queue pair at an address.
func sendTo(t *testing.T, addr netip.AddrPort, qpn uint32) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	require.NoError(t, err)
	defer c.Close()
	b := make([]byte, wire.MinPacketLen)
	header := wire.BTH{Opcode: wire.RCSendOnly, DestQPN: qpn}
	header.Put(b)
	_, err = c.Write(b)
	require.NoError(t, err)
}

// received returns the destination QPNs of the packets in a member's socket.
func received(t *testing.T, m *Member) (list []uint32) {
	b := make([]byte, 100)
	for {
		n, _, err := unix.Recvfrom(m.Socket(), b, unix.MSG_DONTWAIT)
		if err == unix.EAGAIN {
			return list
		}
		require.NoError(t, err)
		list = append(list, wire.ParseBTH(b[:n]).DestQPN)
	}
}

// waitFor waits for a condition that other goroutines bring about.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, time.Millisecond)
}

// TestMembers checks that packets reach the sockets of their slots, whichever process bound them,
// also after that process has left.
func TestMembers(t *testing.T) {
	addr := testAddr(2)
	a, b := joinApart(t, addr), joinApart(t, addr)
	c := joinApart(t, addr)
	require.Equal(t, []int{1, 2, 3}, []int{a.Slot(), b.Slot(), c.Slot()})
	check := func(list ...*Member) {
		t.Helper()
		for _, m := range list {
			first, count := QPNRange(m.Slot())
			sendTo(t, addr, first)
			sendTo(t, addr, first+count-1)
			require.Equal(t, []uint32{first, first + count - 1}, received(t, m))
		}
	}
	check(a, b, c)
	require.NoError(t, a.Close())
	check(b, c)
	sendTo(t, addr, 1<<qpnShift) // to the slot that a has left
	d := joinApart(t, addr)
	require.Equal(t, 4, d.Slot())
	check(d, c, b)
	for _, m := range []*Member{b, c, d} {
		require.NoError(t, m.Close())
		require.NoError(t, m.Close())
	}
	conn, err := link.OpenUDP(link.Options{Addr: addr})
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// TestSlotIsDrained checks that the next owner of a slot gets no packets of the last one.
func TestSlotIsDrained(t *testing.T) {
	addr := testAddr(3)
	a, b := joinApart(t, addr), joinApart(t, addr)
	defer a.Close()
	sendTo(t, addr, 2<<qpnShift)
	require.NoError(t, b.Close())
	sendTo(t, addr, 2<<qpnShift|1)
	for range Slots - 2 {
		m, err := Join(addr)
		require.NoError(t, err)
		require.NotEqual(t, 2, m.Slot())
		require.NoError(t, m.Close())
	}
	full, err := Join(addr)
	require.NoError(t, err)
	defer full.Close()
	require.Equal(t, 2, full.Slot())
	require.Empty(t, received(t, full))
}

// endAbruptly ends the share of a process without a word to the others, as kill does.
func endAbruptly(m *Member) {
	m.name.Close()
	m.g.mu.Lock()
	close(m.g.done)
	for c := range m.g.conns {
		c.Close()
	}
	m.g.mu.Unlock()
	m.g.running.Wait()
	closeAll(m.g.sockets[:])
	m.g.table.close()
}

// TestBrokerEnds ends the broker, and then others, abruptly. Another process takes over: it
// removes services of the ended processes, and serves new ones.
func TestBrokerEnds(t *testing.T) {
	addr := testAddr(4)
	a, b, c := joinApart(t, addr), joinApart(t, addr), joinApart(t, addr)
	for i, m := range []*Member{a, b, c} {
		require.NoError(t, m.AddManager())
		ok, err := m.Register(uint64(7 + i))
		require.NoError(t, err)
		require.True(t, ok)
	}
	find := func(service uint64) (found bool) {
		require.NoError(t, c.g.update(func(t *table) error { _, found = t.findService(service); return nil }))
		return found
	}
	require.True(t, find(7) && find(8) && find(9))
	endAbruptly(a)
	waitFor(t, func() bool { return !find(7) })
	endAbruptly(b)
	waitFor(t, func() bool { return !find(8) })
	require.True(t, find(9))
	d := joinApart(t, addr)
	ok, err := d.Register(9)
	require.NoError(t, err)
	require.False(t, ok)
	ok, err = d.Register(7)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, c.Close())
	ok, err = d.Register(9)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, d.Close())
	_, err = d.Register(10)
	require.ErrorIs(t, err, ErrClosed)
}

// isSlotUsed reports whether the table has an owner of a slot.
func isSlotUsed(t *testing.T, g *group, slot int) (used bool) {
	t.Helper()
	require.NoError(t, g.update(func(t *table) error { used = t.isUsed(slot); return nil }))
	return used
}

// TestKilledBeforeWatch kills a process that has a slot and a connection to the broker, before its
// request.
func TestKilledBeforeWatch(t *testing.T) {
	m, err := Join(testAddr(7))
	require.NoError(t, err)
	defer m.Close()
	waitFor(t, func() bool { // the name is held
		c, err := m.g.dialName(brokerName)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	require.NoError(t, m.g.update(func(t *table) error { t.markUsed(40); return nil }))
	c, err := m.g.dialName(brokerName)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	waitFor(t, func() bool { return !isSlotUsed(t, m.g, 40) })
}

// TestSlowEnd checks that the slot of a process that ends slowly is freed when it has ended, however
// long after its connection that is.
func TestSlowEnd(t *testing.T) {
	m, err := Join(testAddr(8))
	require.NoError(t, err)
	swept := make(chan struct{})
	go func() {
		m.g.sweepAfter(os.Getpid())
		close(swept)
	}()
	require.True(t, isSlotUsed(t, m.g, m.slot))
	require.NoError(t, m.name.Close())
	<-swept
	require.False(t, isSlotUsed(t, m.g, m.slot))
	require.NoError(t, m.Close())
}

// TestServiceOfEndedProcess registers the service of a process whose end nobody has noticed yet.
func TestServiceOfEndedProcess(t *testing.T) {
	m, err := Join(testAddr(5))
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.g.update(func(t *table) error {
		t.markUsed(40)
		return t.addService(7, 40)
	}))
	ok, err := m.Register(7)
	require.NoError(t, err)
	require.True(t, ok)
}

// TestSilentHolder holds the broker's name without a reply. A process gets the sockets from
// another one, and if all are silent, an error that names a process.
func TestSilentHolder(t *testing.T) {
	g := &group{addr: testAddr(6)}
	silent, err := g.listenName(brokerName)
	require.NoError(t, err)
	a := joinApart(t, g.addr)
	b := joinApart(t, g.addr)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, silent.Close())

	conn, err := link.OpenUDP(link.Options{Addr: g.addr})
	require.NoError(t, err)
	silent, err = g.listenName(3)
	require.NoError(t, err)
	_, err = Join(g.addr)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, "does not hand out the sockets")
	require.NoError(t, silent.Close())
	require.NoError(t, conn.Close())
}
