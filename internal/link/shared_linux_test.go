package link

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/wire"
)

// sharedSockets returns sockets that share an address.
func sharedSockets(t *testing.T, net byte, n int) (netip.AddrPort, []int) {
	addr := ownaddr.Device(net)
	fds, err := BindShared(addr, n)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	})
	return addr, fds
}

// TestBindShared checks that nobody else can bind the address of a group, as a group or alone, and
// that a group cannot be formed on an address in use.
func TestBindShared(t *testing.T) {
	addr, _ := sharedSockets(t, 80, 4)
	_, err := BindShared(addr, 4)
	require.True(t, IsAddrInUse(err), err)
	_, err = OpenUDP(Options{Addr: addr})
	require.True(t, IsAddrInUse(err), err)
	other := netip.AddrPortFrom(addr.Addr(), 4792)
	c, err := OpenUDP(Options{Addr: other})
	require.NoError(t, err)
	defer c.Close()
	_, err = BindShared(other, 4)
	require.True(t, IsAddrInUse(err), err)
	_, err = BindShared(netip.AddrPortFrom(netip.IPv4Unspecified(), 4791), 4)
	require.ErrorContains(t, err, "not a definite address")
}

// TestAdopt opens a socket by one link after the other: the second one works although the first
// one was closed while it waited, and it does not count packets that were dropped before.
func TestAdopt(t *testing.T) {
	addr, fds := sharedSockets(t, 81, 1)
	c, err := Adopt(Options{Addr: addr}, fds[0])
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := c.Wait(-1)
		done <- err
	}()
	require.NoError(t, c.Close())
	require.Error(t, <-done)

	ShrinkBuffer(fds[0])
	sender, err := OpenUDP(Options{Addr: ownaddr.Device(82), NoGSO: true})
	require.NoError(t, err)
	defer sender.Close()
	b := NewBatch(1 << 16)
	send := func(packets int) {
		for range packets {
			b.Next(&wire.Path{Dst: addr}, 1000)
		}
		require.NoError(t, sender.WriteBatch(b))
		b.Reset()
	}
	send(50)
	require.NotZero(t, readDrops(fds[0]))
	c, err = Adopt(Options{Addr: addr, TOS: 4}, fds[0])
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, addr, c.LocalAddr())
	r := NewDatagrams(64)
	send(1)
	for received := 0; received < 2; received += len(r.Msgs()) { // at least one from before
		_, err := c.Wait(time.Minute)
		require.NoError(t, err)
		_, err = c.ReadBatch(r)
		require.NoError(t, err)
	}
	stats, ok := c.(interface{ Stats() Stats })
	require.True(t, ok)
	require.Zero(t, stats.Stats().ReceiveOverflow)
}

// TestAdoptPortable checks the error where the fast path is switched off.
func TestAdoptPortable(t *testing.T) {
	addr, fds := sharedSockets(t, 83, 1)
	_, err := Adopt(Options{Addr: addr, Portable: true}, fds[0])
	require.ErrorContains(t, err, "a shared address needs the fast path")
}
