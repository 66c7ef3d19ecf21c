package link

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// closedPort returns a loopback address without a listener.
func closedPort(t *testing.T, ip string) netip.AddrPort {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	at := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// TestRefusalByICMP checks that a packet that a closed port has rejected by ICMP is returned to the
// reader with its destination and header, and that it wakes up a waiting link.
func TestRefusalByICMP(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		o := Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(ip), 0)}
		c, err := OpenUDP(o)
		require.NoError(t, err)
		defer c.Close()
		dst := closedPort(t, ip)
		b, r := NewBatch(4096), NewDatagrams(4)
		pkt := b.Next(&wire.Path{Dst: dst}, 64)
		for i := range pkt {
			pkt[i] = byte(i)
		}
		require.NoError(t, c.WriteBatch(b))
		require.Empty(t, b.Refusals())
		readable, err := c.Wait(5 * time.Second)
		require.NoError(t, err)
		require.True(t, readable)
		_, err = c.ReadBatch(r)
		require.NoError(t, err)
		require.Len(t, r.Refusals(), 1)
		got := r.Refusals()[0]
		require.Equal(t, dst, got.Dst)
		require.True(t, got.ICMP)
		require.Equal(t, syscall.ECONNREFUSED, got.Err)
		require.Equal(t, pkt[:len(got.Head())], got.Head())
		require.Len(t, got.Head(), maxRefusalHead)
		require.EqualValues(t, 1, StatsOf(c).ICMPErrors)
		readable, err = c.Wait(0)
		require.NoError(t, err)
		require.False(t, readable, "the error queue is not empty")
	}
}

// TestRefusalByICMPDuringSend checks that an ICMP error that the next send reports does not affect
// that send: all packets of the batch leave, and the error is reported for the earlier batch.
func TestRefusalByICMPDuringSend(t *testing.T) {
	a, b := openPair(t, loopback)
	dst := closedPort(t, "127.0.0.1")
	batch := NewBatch(4096)
	batch.Next(&wire.Path{Dst: dst}, 64)
	require.NoError(t, a.WriteBatch(batch))
	batch.Reset()
	threeGroups(batch, pathTo(b))
	require.NoError(t, a.WriteBatch(batch))
	require.Len(t, receive(t, b, NewDatagrams(8), 6), 6)
	require.Len(t, batch.Refusals(), 1)
	require.Equal(t, dst, batch.Refusals()[0].Dst)
	require.Zero(t, a.Stats().SendLost())
}

// TestRefusalBySystem checks that an error of the system is reported for each packet of its group,
// and that packets to other destinations leave.
func TestRefusalBySystem(t *testing.T) {
	a, b := openPair(t, loopback)
	batch := NewBatch(4096)
	far := &wire.Path{Dst: netip.MustParseAddrPort("192.0.2.1:4791")} // not from a loopback address
	for range 3 {
		batch.Next(far, 64)
	}
	threeGroups(batch, pathTo(b))
	require.NoError(t, a.WriteBatch(batch))
	require.Len(t, receive(t, b, NewDatagrams(8), 6), 6)
	require.Len(t, batch.Refusals(), 3)
	for _, r := range batch.Refusals() {
		require.Equal(t, far.Dst, r.Dst)
		require.False(t, r.ICMP)
		require.NotZero(t, r.Err)
		require.Equal(t, 64+28, r.Size)
	}
	batch.Reset()
	require.Empty(t, batch.Refusals())
}

func TestPathMTU(t *testing.T) {
	a, b := openPair(t, loopback)
	mtu, err := PathMTU(a, b.LocalAddr())
	require.NoError(t, err)
	require.GreaterOrEqual(t, mtu, 65535)
	_, err = PathMTU(a, netip.MustParseAddrPort("192.0.2.1:4791"))
	require.Error(t, err, "a loopback address leads nowhere else")
}
