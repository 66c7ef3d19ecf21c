package shm

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// openLink returns a wrapped link on a free port of the loopback interface.
func openLink(t *testing.T) *conn {
	t.Helper()
	inner, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
	require.NoError(t, err)
	c, ok := Wrap(inner).(*conn)
	require.True(t, ok)
	t.Cleanup(func() { c.Close() })
	return c
}

// sendPackets sends packets of n bytes, each with its number at the end.
func sendPackets(t *testing.T, c *conn, to *conn, first, count, n int) {
	t.Helper()
	b := link.NewBatch(1 << 20)
	for i := range count {
		pkt := b.Next(&wire.Path{Dst: to.local, TrafficClass: 5}, n)
		clear(pkt)
		binary.BigEndian.PutUint32(pkt[n-8:], uint32(first+i))
	}
	require.NoError(t, c.WriteBatch(b))
	require.Empty(t, b.Refusals())
}

// receivePackets waits for count packets and checks that they are numbered from first on, and sealed.
func receivePackets(t *testing.T, c *conn, from *conn, first, count, n int) {
	t.Helper()
	r := link.NewDatagrams(16)
	icrc := wire.NewICRC(from.local, c.local)
	for end := time.Now().Add(20 * time.Second); count > 0; {
		require.True(t, time.Now().Before(end), "%d packets are missing", count)
		got, err := c.ReadBatch(r)
		require.NoError(t, err)
		if got == 0 {
			_, err := c.Wait(time.Second)
			require.NoError(t, err)
			continue
		}
		for _, d := range r.Msgs() {
			require.Equal(t, from.local, d.Src)
			for i := range d.Count() {
				pkt := d.Packet(i)
				require.Len(t, pkt, n)
				require.Equal(t, uint32(first), binary.BigEndian.Uint32(pkt[n-8:]))
				result, _ := icrc.Check(pkt, uint16(i))
				require.Equal(t, wire.ICRCExact, result, "the ICRC of packet %d", first)
				first++
				count--
			}
		}
	}
}

// TestPackets sends through rings in both directions, more than a ring holds in all. No packet goes
// through the socket.
func TestPackets(t *testing.T) {
	a, b := openLink(t), openLink(t)
	for i := 0; i < 6000; i += 60 {
		sendPackets(t, a, b, i, 60, 1000)
		sendPackets(t, b, a, i, 60, 100)
		receivePackets(t, b, a, i, 60, 1000)
		receivePackets(t, a, b, i, 60, 100)
	}
	for _, c := range []*conn{a, b} {
		require.Zero(t, link.StatsOf(c.Conn).SentPackets, "through the socket")
		require.Equal(t, uint64(6000), c.Stats().SentPackets)
		require.Equal(t, uint64(6000), c.Stats().ReceivedPackets)
	}
}

// TestMixed sends one batch to a link with a ring and to one without.
func TestMixed(t *testing.T) {
	a, b := openLink(t), openLink(t)
	plain, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
	require.NoError(t, err)
	defer plain.Close()
	batch := link.NewBatch(1 << 16)
	for i := range 10 {
		dst := b.local
		if i%2 == 1 {
			dst = plain.LocalAddr()
		}
		pkt := batch.Next(&wire.Path{Dst: dst}, 64)
		clear(pkt)
		binary.BigEndian.PutUint32(pkt[56:], uint32(i))
	}
	require.NoError(t, a.WriteBatch(batch))
	read := func(c link.Conn, first int) {
		r := link.NewDatagrams(16)
		for want := first; want < 10; {
			if n, err := c.ReadBatch(r); n == 0 {
				require.NoError(t, err)
				_, err = c.Wait(time.Second)
				require.NoError(t, err)
				continue
			}
			for _, d := range r.Msgs() {
				for i := range d.Count() {
					require.Equal(t, uint32(want), binary.BigEndian.Uint32(d.Packet(i)[56:]))
					want += 2
				}
			}
		}
	}
	read(b, 0)
	read(plain, 1)
}

// TestWake ends a Wait by a packet of a ring, and by the first packet of a new ring.
func TestWake(t *testing.T) {
	a, b, other := openLink(t), openLink(t), openLink(t)
	sendPackets(t, a, b, 0, 1, 64)
	receivePackets(t, b, a, 0, 1, 64)
	for _, from := range []*conn{a, other, a} {
		waited := make(chan error, 1)
		go func() {
			for {
				readable, err := b.Wait(20 * time.Second)
				if readable || err != nil {
					waited <- err
					return
				}
			}
		}()
		sendPackets(t, from, b, 7, 1, 64)
		require.NoError(t, <-waited)
		receivePackets(t, b, from, 7, 1, 64)
	}
}

// TestPeerCloses goes back to the socket when a peer closes, and to a new ring when it opens again.
func TestPeerCloses(t *testing.T) {
	a, b := openLink(t), openLink(t)
	sendPackets(t, a, b, 0, 1, 64)
	receivePackets(t, b, a, 0, 1, 64)
	addr := b.local
	require.NoError(t, b.Close())
	o := a.outgoing[addr]
	require.Eventually(t, func() bool { return o.peer == nil || o.peer.gone.Load() }, 10*time.Second, time.Millisecond)
	sendPackets(t, a, b, 1, 1, 64)
	require.Nil(t, o.peer)
	require.Equal(t, uint64(1), link.StatsOf(a.Conn).SentPackets, "the ring is gone")
}

// TestWriteClosed makes no ring once the link is closed.
func TestWriteClosed(t *testing.T) {
	a, b := openLink(t), openLink(t)
	require.NoError(t, a.Close())
	batch := link.NewBatch(4096)
	clear(batch.Next(&wire.Path{Dst: b.local}, 64))
	require.ErrorIs(t, a.WriteBatch(batch), net.ErrClosed)
	require.Empty(t, b.incoming)
}

// TestFullRing loses the packets for which nobody makes room, and delivers the others.
func TestFullRing(t *testing.T) {
	a, b := openLink(t), openLink(t)
	sent := 0
	for a.counters.lost.Load() == 0 {
		sendPackets(t, a, b, sent, 60, 1000)
		sent += 60
	}
	lost := int(a.counters.lost.Load())
	require.Less(t, lost, sent/2)
	receivePackets(t, b, a, 0, sent-lost, 1000)
}

// TestStrangers refuses handshakes that do not keep to the protocol, and goes on.
func TestStrangers(t *testing.T) {
	a, b := openLink(t), openLink(t)
	memory := func(size int64, seals int) int {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		require.NoError(t, unix.Ftruncate(fd, size))
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		require.NoError(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	good := memory(controlSize+ringSize, requiredSeal)
	for name, c := range map[string]struct {
		text string
		fds  []int
	}{
		"another version":   {"softrnic-shm 2 127.0.0.1:4791", []int{good}},
		"no address":        {version, []int{good}},
		"a bad address":     {version + "localhost", []int{good}},
		"no memory":         {version + "127.0.0.1:4791", nil},
		"two descriptors":   {version + "127.0.0.1:4791", []int{good, good}},
		"memory can shrink": {version + "127.0.0.1:4791", []int{memory(controlSize+ringSize, unix.F_SEAL_GROW)}},
		"short memory":      {version + "127.0.0.1:4791", []int{memory(controlSize, requiredSeal)}},
		"a pipe":            {version + "127.0.0.1:4791", []int{int(os.Stdin.Fd())}},
		"nothing":           {"", nil},
	} {
		s, err := net.DialUnix("unixpacket", nil, socketName(b.local))
		require.NoError(t, err, name)
		require.NoError(t, s.SetDeadline(time.Now().Add(20*time.Second)))
		if c.text != "" {
			var rights []byte
			if c.fds != nil {
				rights = unix.UnixRights(c.fds...)
			}
			_, _, err = s.WriteMsgUnix([]byte(c.text), rights, nil)
			require.NoError(t, err, name)
		}
		var answer [64]byte
		n, err := s.Read(answer[:])
		require.Error(t, err, "%s: %q", name, answer[:n])
		s.Close()
	}
	sendPackets(t, a, b, 0, 3, 64)
	receivePackets(t, b, a, 0, 3, 64)
}

// TestBrokenRing drops a ring in which the peer wrote an impossible word, and goes on with others.
func TestBrokenRing(t *testing.T) {
	a, b, c := openLink(t), openLink(t), openLink(t)
	sendPackets(t, a, b, 0, 1, 64)
	sendPackets(t, c, b, 0, 1, 64)
	r := link.NewDatagrams(16)
	ring := a.outgoing[b.local].ring
	ring.wordAt(0).Store(uint64(wordValid) | 0xffff)
	n, err := b.ReadBatch(r)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, c.local, r.Msgs()[0].Src)
	require.Len(t, b.incoming, 1)
}

// TestCopyGroup copies zero-copy payloads in place, and zeroes a packet whose memory is gone.
func TestCopyGroup(t *testing.T) {
	gone, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	b := link.NewBatch(1 << 16)
	path := &wire.Path{Dst: netip.MustParseAddrPort("127.0.0.1:4791")}
	clear(b.NextZeroCopy(path, 12, bytes.Repeat([]byte{7}, 100)))
	clear(b.NextZeroCopy(path, 12, gone[:100]))
	require.NoError(t, unix.Munmap(gone))
	n, seg := b.GroupSize(0)
	require.Equal(t, []int{232, 116}, []int{n, seg})
	to := bytes.Repeat([]byte{1}, n)
	b.CopyGroup(0, to)
	require.Equal(t, append(make([]byte, 12), bytes.Repeat([]byte{7}, 100)...), to[:112])
	require.Equal(t, make([]byte, 116), to[116:])
}
