package shm

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/childtest"
	"github.com/softrnic/softrnic/internal/link"
)

// An order makes a child open a link at an address, or receive that many packets.
type order struct {
	Open    string
	Receive int
}

// A received is the reply to an order.
type received struct {
	Addr    string
	Numbers []uint32
	Shared  uint64 // packets that came through a ring
}

func TestMain(m *testing.M) {
	var c link.Conn
	childtest.Serve(func(o *order, r *received) error {
		if o.Open != "" {
			inner, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort(o.Open)})
			if err != nil {
				return err
			}
			c = Wrap([]link.Conn{inner}, -1, nil)[0]
			r.Addr = c.LocalAddr().String()
		}
		d := link.NewDatagrams(16)
		for end := time.Now().Add(20 * time.Second); len(r.Numbers) < o.Receive; {
			if time.Now().After(end) {
				return errors.New("packets are missing")
			}
			n, err := c.ReadBatch(d)
			if err != nil {
				return err
			}
			if n == 0 {
				if _, err := c.Wait(time.Second); err != nil {
					return err
				}
			}
			for _, d := range d.Msgs() {
				for i := range d.Count() {
					pkt := d.Packet(i)
					r.Numbers = append(r.Numbers, binary.BigEndian.Uint32(pkt[len(pkt)-8:]))
				}
			}
		}
		if o.Receive > 0 {
			r.Shared = link.StatsOf(c).SharedReceivedPackets
		}
		return nil
	})
	os.Exit(m.Run())
}

// TestKilledPeer loses its ring with a peer that is killed, and gets a new one from a process at the same
// address. A peer that is stopped gets all packets when it continues.
func TestKilledPeer(t *testing.T) {
	a := openLink(t)
	child := childtest.Start[order, received](t)
	addr := child.Do(order{Open: "127.0.0.1:0"}).Addr
	b := &conn{local: netip.MustParseAddrPort(addr)}
	sendPackets(t, a, b, 0, 10, 100)
	require.Equal(t, "shm", a.Route(b.local, 1))
	require.NoError(t, child.Process().Signal(syscall.SIGSTOP))
	sendPackets(t, a, b, 10, 10, 100)
	require.NoError(t, child.Process().Signal(syscall.SIGCONT))
	got := child.Do(order{Receive: 20})
	require.Equal(t, uint64(20), got.Shared)
	require.Equal(t, uint32(19), got.Numbers[19])

	o := a.destinations[b.local].rings[0]
	child.Kill()
	require.Eventually(t, o.peer.gone.Load, 20*time.Second, time.Millisecond)
	sendPackets(t, a, b, 20, 1, 100)
	require.Equal(t, "udp", a.Route(b.local, 1))

	next := childtest.Start[order, received](t)
	next.Do(order{Open: addr})
	o.retryAt = time.Time{}
	sendPackets(t, a, b, 21, 5, 100)
	require.Equal(t, "shm", a.Route(b.local, 1))
	got = next.Do(order{Receive: 5})
	require.Equal(t, []uint32{21, 22, 23, 24, 25}, got.Numbers)
	require.Equal(t, uint64(5), got.Shared)
}

// onThread calls f on a thread of its own, which ends with it.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		f()
	}()
	<-done
}

// TestOtherUser uses the socket where a process of another user has the name, in both directions.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	a, b := openLink(t), openLink(t)
	const nobody = 65534
	var stranger link.Conn
	var err error
	onThread(func() {
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0))
		if err = errno; errno != 0 {
			return
		}
		var inner link.Conn
		if inner, err = link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")}); err == nil {
			stranger = Wrap([]link.Conn{inner}, -1, nil)[0]
		}
		_, _, err = dialPeer(inner.LocalAddr(), b.local, 0, false, 0, 1)
	})
	require.NotNil(t, stranger)
	defer stranger.Close()
	require.Error(t, err, "b takes the ring of another user")
	_, _, err = dialPeer(a.local, stranger.LocalAddr(), 0, false, 0, 1)
	require.ErrorContains(t, err, "the peer has user 65534, this process 0")
	sendPackets(t, a, &conn{local: stranger.LocalAddr()}, 0, 1, 64)
	require.Equal(t, "udp", a.Route(stranger.LocalAddr(), 1))
	require.Empty(t, b.joining)
}

// TestOtherNamespace finds no ring of an adapter at the same address in another network namespace, as that
// of a container.
func TestOtherNamespace(t *testing.T) {
	a := openLink(t)
	addr := netip.MustParseAddrPort("127.9.9.8:4791")
	var l *listener
	var err error
	onThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			l, err = listenAt(addr, -1, []*conn{a})
		}
	})
	if errors.Is(err, unix.EPERM) {
		t.Skip("needs a network namespace: ", err)
	}
	require.NoError(t, err)
	defer l.closeSocket()
	_, _, err = dialPeer(a.local, addr, 0, false, 0, 1)
	require.True(t, isNoName(err), err)
}

// TestNoDescriptors uses the socket where the process has no descriptor left for a ring.
func TestNoDescriptors(t *testing.T) {
	a, b := openLink(t), openLink(t)
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	none := before
	none.Cur = 3
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	_, _, err := dialPeer(a.local, b.local, 0, false, 0, 1)
	sendPackets(t, a, b, 0, 1, 64)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	require.ErrorIs(t, err, unix.EMFILE)
	require.Equal(t, "udp", a.Route(b.local, 1))
	receivePackets(t, b, a, 0, 1, 64)
}

// TestMemoryFull goes on with the part of a ring that has memory when the system has no more.
func TestMemoryFull(t *testing.T) {
	a, b := openLink(t), openLink(t)
	sendPackets(t, a, b, 0, 1, 64)
	ring := &a.destinations[b.local].rings[0].ring
	ring.prepare = func([]byte) bool { return false }
	receivePackets(t, b, a, 0, 1, 64)
	for i := 0; i < 6000; i += 60 {
		sendPackets(t, a, b, i, 60, 1000)
		receivePackets(t, b, a, i, 60, 1000)
	}
	require.EqualValues(t, minLimit, ring.limit)
	require.Zero(t, a.Stats().SharedLost)
}
