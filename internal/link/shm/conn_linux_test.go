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
	c, ok := Wrap([]link.Conn{inner}, -1, nil)[0].(*conn)
	require.True(t, ok)
	t.Cleanup(func() { c.Close() })
	return c
}

// sendPackets sends packets of UC of n bytes, each with its number at the end.
func sendPackets(t *testing.T, c *conn, to *conn, first, count, n int) {
	t.Helper()
	b := link.NewBatch(1 << 20)
	for i := range count {
		pkt := b.Next(&wire.Path{Dst: to.local, TrafficClass: 5}, n)
		clear(pkt)
		pkt[0] = byte(wire.UCSendOnly)
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
				if !d.Unsealed {
					result, _ := icrc.Check(pkt, uint16(i))
					require.Equal(t, wire.ICRCExact, result, "the ICRC of packet %d", first)
				}
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
		require.Equal(t, uint64(6000), c.Stats().SharedSentPackets)
		require.Equal(t, uint64(6000), c.Stats().SharedReceivedPackets)
		require.Equal(t, c.Stats().SentPackets, c.Stats().SharedSentPackets)
	}
	require.Equal(t, uint64(6000*1000), a.Stats().SharedSentBytes)
	require.Equal(t, uint64(6000*1000), b.Stats().SharedReceivedBytes)
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

// TestQuietSocket checks that a packet at the socket, where none has come for long, ends a wait and is in the
// next batch, although rings are looked at more often.
func TestQuietSocket(t *testing.T) {
	a, b := openLink(t), openLink(t)
	sendPackets(t, a, b, 0, 1, 64)
	receivePackets(t, b, a, 0, 1, 64)
	plain, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
	require.NoError(t, err)
	defer plain.Close()
	r := link.NewDatagrams(16)
	for range 3 {
		b.quietLooks = socketMemory
		batch := link.NewBatch(1 << 10)
		clear(batch.Next(&wire.Path{Dst: b.local}, 64))
		require.NoError(t, plain.WriteBatch(batch))
		readable, err := b.Wait(10 * time.Second)
		require.NoError(t, err)
		require.True(t, readable)
		n, err := b.ReadBatch(r)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, plain.LocalAddr(), r.Msgs()[0].Src)
	}
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

// TestWakeBySocket reads the socket after a Wait that found it readable, although nothing came there for
// long.
func TestWakeBySocket(t *testing.T) {
	a, b := openLink(t), openLink(t)
	sendPackets(t, a, b, 0, 1, 64)
	receivePackets(t, b, a, 0, 1, 64)
	r := link.NewDatagrams(4)
	for range 2 * socketMemory * idleSocket {
		_, err := b.ReadBatch(r)
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, b.quietLooks, socketMemory)
	batch := link.NewBatch(4096)
	clear(batch.Next(&wire.Path{Dst: b.local}, 64))
	require.NoError(t, a.Conn.WriteBatch(batch))
	for readable := false; !readable; {
		var err error
		readable, err = b.Wait(20 * time.Second)
		require.NoError(t, err)
	}
	n, err := b.ReadBatch(r)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// TestPeerCloses goes back to the socket when a peer closes, and to a new ring when it opens again.
func TestPeerCloses(t *testing.T) {
	a, b := openLink(t), openLink(t)
	sendPackets(t, a, b, 0, 1, 64)
	receivePackets(t, b, a, 0, 1, 64)
	addr := b.local
	require.NoError(t, b.Close())
	o := a.destinations[addr].rings[0]
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
	require.Empty(t, append(b.joining, b.active...))
}

// TestFullRing loses the packets for which nobody makes room, and delivers the others.
func TestFullRing(t *testing.T) {
	a, b := openLink(t), openLink(t)
	sent := 0
	for a.Stats().SharedLost == 0 {
		sendPackets(t, a, b, sent, 60, 1000)
		sent += 60
	}
	lost := int(a.Stats().SharedLost)
	require.Less(t, lost, sent/2)
	require.Greater(t, sent*1000, ringSize*7/8)
	receivePackets(t, b, a, 0, sent-lost, 1000)
	readNothing(t, b)
	ring := a.destinations[b.local].rings[0].ring
	require.Equal(t, ring.next, ring.ring.consumedCounter().Load(), "all records are released")
}

// TestSilentPeer uses the socket, after a bounded time, where a process has the name but does not answer.
func TestSilentPeer(t *testing.T) {
	a := openLink(t)
	dst := netip.MustParseAddrPort("127.9.9.9:9")
	silent, err := net.ListenUnix("unixpacket", socketName(dst, -1))
	require.NoError(t, err)
	defer silent.Close()
	sendPackets(t, a, &conn{local: dst}, 0, 1, 64)
	o := a.destinations[dst].rings[0]
	require.Nil(t, o.peer)
	require.True(t, o.retryAt.After(time.Now().Add(-handshakeMax)))
	require.Equal(t, "udp", a.Route(dst, 5))
}

// TestSealed passes a bit flip through a ring with the ICRC that reveals it, and packets that a
// capture has sealed with their ICRC.
func TestSealed(t *testing.T) {
	a, b := openLink(t), openLink(t)
	icrc := wire.NewICRC(a.local, b.local)
	read := func() wire.ICRCResult {
		r := link.NewDatagrams(1)
		for {
			n, err := b.ReadBatch(r)
			require.NoError(t, err)
			if n == 1 {
				require.False(t, r.Msgs()[0].Unsealed)
				result, _ := icrc.Check(r.Msgs()[0].Buf, 0)
				return result
			}
		}
	}
	for _, flipped := range []bool{true, false} {
		batch := link.NewBatch(4096)
		clear(batch.Next(&wire.Path{Dst: b.local}, 64))
		if flipped {
			batch.Corrupt(0, 200)
		} else {
			batch.Seal(a.local, true)
		}
		require.NoError(t, a.WriteBatch(batch))
		require.Equal(t, flipped, read() == wire.ICRCBad)
	}
}

// TestManyPeers looks at most peers in turns, and delivers the packets of each.
func TestManyPeers(t *testing.T) {
	b := openLink(t)
	var peers []*conn
	for range 12 {
		peers = append(peers, openLink(t))
	}
	for _, p := range peers {
		sendPackets(t, p, b, 0, 1, 64)
		receivePackets(t, b, p, 0, 1, 64)
	}
	r := link.NewDatagrams(4)
	for range 2 * idleAfter {
		_, err := b.ReadBatch(r)
		require.NoError(t, err)
	}
	require.Len(t, b.active, maxActive)
	require.Len(t, b.idle, len(peers)-maxActive)
	for _, p := range peers {
		sendPackets(t, p, b, 1, 1, 64)
		receivePackets(t, b, p, 1, 1, 64)
	}
	require.NoError(t, peers[0].Close())
	require.NoError(t, peers[11].Close())
	for len(b.active)+len(b.idle) > len(peers)-2 {
		_, err := b.ReadBatch(r)
		require.NoError(t, err)
	}
}

// TestShards sends packets to the shard of their destination QPN.
func TestShards(t *testing.T) {
	a := openLink(t)
	inner, err := link.OpenGroup(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")}, 3)
	require.NoError(t, err)
	shards := Wrap(inner, -1, nil)
	for _, c := range shards {
		defer c.Close()
	}
	batch := link.NewBatch(4096)
	for _, qpn := range []uint32{5, 6, 7, 10} { // not in the order of the shards, and 10 is of the shard of 7
		pkt := batch.Next(&wire.Path{Dst: shards[0].LocalAddr(), TrafficClass: uint8(4 * qpn)}, 64)
		clear(pkt)
		binary.BigEndian.PutUint32(pkt[4:], qpn)
	}
	require.NoError(t, a.WriteBatch(batch))
	for i, want := range [][]uint32{{6}, {7, 10}, {5}} {
		r := link.NewDatagrams(4)
		n, err := shards[i].ReadBatch(r)
		require.NoError(t, err)
		require.Equal(t, len(want), n)
		for j, d := range r.Msgs() {
			require.Equal(t, want[j], binary.BigEndian.Uint32(d.Buf[4:]))
		}
	}
	require.Zero(t, link.StatsOf(a.Conn).SentPackets, "through the socket")
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
		"another version":   {"softrnic-shm 2 127.0.0.1:4791 0 1", []int{good}},
		"another shard":     {version + "1 127.0.0.1:4791 0 1", []int{good}},
		"no shard":          {version + "x 127.0.0.1:4791 0 1", []int{good}},
		"no address":        {version, []int{good}},
		"a bad address":     {version + "0 localhost 0 1", []int{good}},
		"no count":          {version + "0 127.0.0.1:4791 x 1", []int{good}},
		"no shards":         {version + "0 127.0.0.1:4791 0 x", []int{good}},
		"no memory":         {version + "0 127.0.0.1:4791 0 1", nil},
		"two descriptors":   {version + "0 127.0.0.1:4791 0 1", []int{good, good}},
		"memory can shrink": {version + "0 127.0.0.1:4791 0 1", []int{memory(controlSize+ringSize, unix.F_SEAL_GROW)}},
		"short memory":      {version + "0 127.0.0.1:4791 0 1", []int{memory(controlSize, requiredSeal)}},
		"a pipe":            {version + "0 127.0.0.1:4791 0 1", []int{int(os.Stdin.Fd())}},
		"nothing":           {"", nil},
	} {
		s, err := net.DialUnix("unixpacket", nil, socketName(b.local, -1))
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
	ring := a.destinations[b.local].rings[0].ring
	ring.wordAt(0).Store(uint64(wordValid) | 0xffff)
	n, err := b.ReadBatch(r)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, c.local, r.Msgs()[0].Src)
	require.Len(t, b.active, 1)
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
