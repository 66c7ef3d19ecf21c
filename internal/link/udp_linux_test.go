package link

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/wire"
)

var loopback = Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")}

// openPair opens two accelerated links and returns the first one as its implementation.
func openPair(t *testing.T, o Options) (*udp, Conn) {
	return open(t, o).(*udp), open(t, o)
}

// failOnce reports errno in place of the first send of at least min packets.
func failOnce(errno unix.Errno, min int) func(int) unix.Errno {
	failed := false
	return func(packets int) unix.Errno {
		if failed || packets < min {
			return 0
		}
		failed = true
		return errno
	}
}

// threeGroups appends three groups of 3, 2 and 1 packets.
func threeGroups(b *Batch, to *wire.Path) {
	for i, n := range []int{100, 100, 50, 200, 200, 300} {
		appendPacket(b, to, n, uint64(i), 16*(i%2))
	}
}

// TestGSOFallback fails a GSO send in the middle of a batch and checks that every packet arrives
// once, in order, and from there on with the ICRC of identification 0.
func TestGSOFallback(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EIO, unix.EINVAL} {
		for _, nommsg := range []bool{false, true} {
			o := loopback
			o.NoMMsg = nommsg
			a, b := openPair(t, o)
			require.True(t, a.Caps().GSO)
			a.tx.inject = failOnce(errno, 2)

			batch, r := NewBatch(4096), NewDatagrams(8)
			threeGroups(batch, pathTo(b))
			batch.Corrupt(4, 77)
			require.NoError(t, a.WriteBatch(batch))
			sealer := wire.NewICRC(a.LocalAddr(), b.LocalAddr())
			for i, g := range receive(t, b, r, 6) {
				_, sent := batch.Packet(i)
				require.Equal(t, sent, g.pkt)
				want := wire.ICRCExact
				if i == 4 {
					want = wire.ICRCBad
				}
				check, _ := sealer.Check(g.pkt, 0)
				require.Equal(t, want, check)
			}
			require.False(t, a.Caps().GSO, "off for good")
			s := a.Stats()
			require.EqualValues(t, 1, s.GSOFallbacks)
			require.EqualValues(t, 6, s.SentPackets)
			require.Zero(t, s.SendLost())

			batch.Reset()
			threeGroups(batch, pathTo(b))
			require.NoError(t, a.WriteBatch(batch))
			for _, g := range receive(t, b, r, 6) {
				require.Zero(t, g.index)
			}
		}
	}
}

// TestErrorIsNotGSO sends packets that fail with and without GSO, and checks that the packets
// around them arrive and GSO stays on.
func TestErrorIsNotGSO(t *testing.T) {
	a, b := openPair(t, loopback)
	nowhere := &wire.Path{Dst: netip.MustParseAddrPort("127.0.0.1:0")} // EINVAL
	wrong := &wire.Path{Dst: netip.MustParseAddrPort("[::1]:4791")}    // EAFNOSUPPORT
	batch := NewBatch(4096)
	for _, to := range []*wire.Path{pathTo(b), nowhere, pathTo(b), wrong, pathTo(b)} {
		batch.Next(to, 100)
		batch.Next(to, 100)
	}
	require.NoError(t, a.WriteBatch(batch))
	sealer := wire.NewICRC(a.LocalAddr(), b.LocalAddr())
	for i, g := range receive(t, b, NewDatagrams(8), 6) {
		require.Equal(t, i%2, g.index, "in groups of two")
		check, _ := sealer.Check(g.pkt, uint16(g.index))
		require.Equal(t, wire.ICRCExact, check)
	}
	require.True(t, a.Caps().GSO)
	s := a.Stats()
	require.EqualValues(t, 6, s.SentPackets)
	require.EqualValues(t, 2, s.SendFailed)
	require.EqualValues(t, 2, s.SendUnreachable)
	require.EqualValues(t, 4, s.SendLost())
	require.Zero(t, s.GSOFallbacks)
}

// TestRefusedSends checks that sends that the system rejects are counted, and that later packets
// leave.
func TestRefusedSends(t *testing.T) {
	tests := []struct {
		errno   unix.Errno
		lost    uint64
		counter func(Stats) uint64
	}{
		{unix.ENOBUFS, 3, func(s Stats) uint64 { return s.SendNoBuffers }},
		{unix.EPERM, 3, func(s Stats) uint64 { return s.SendDenied }},
		{unix.ENETUNREACH, 3, func(s Stats) uint64 { return s.SendUnreachable }},
		{unix.EPIPE, 3, func(s Stats) uint64 { return s.SendFailed }},
	}
	for _, test := range tests {
		a, b := openPair(t, loopback)
		a.tx.inject = failOnce(test.errno, 1)
		batch := NewBatch(4096)
		threeGroups(batch, pathTo(b))
		require.NoError(t, a.WriteBatch(batch))
		for i, g := range receive(t, b, NewDatagrams(8), 3) {
			_, sent := batch.Packet(3 + i)
			require.Equal(t, sent, g.pkt)
		}
		s := a.Stats()
		require.Equal(t, test.lost, test.counter(s), test.errno)
		require.Equal(t, test.lost, s.SendLost())
		require.EqualValues(t, 3, s.SentPackets)
	}
}

// TestRetriedSends fails sends with errors after which the same packets are sent again.
func TestRetriedSends(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EAGAIN, unix.ECONNREFUSED, unix.ENOSYS} {
		a, b := openPair(t, loopback)
		a.tx.inject = failOnce(errno, 1)
		batch := NewBatch(4096)
		threeGroups(batch, pathTo(b))
		require.NoError(t, a.WriteBatch(batch))
		for i, g := range receive(t, b, NewDatagrams(8), 6) {
			_, sent := batch.Packet(i)
			require.Equal(t, sent, g.pkt)
		}
		s := a.Stats()
		require.Zero(t, s.SendLost())
		require.Equal(t, errno == unix.EAGAIN, s.SendBlocked == 1)
		require.Equal(t, errno == unix.ECONNREFUSED, s.ICMPErrors == 1)
		require.Equal(t, errno != unix.ENOSYS, a.Caps().MMsg)
	}
}

// TestTooBig sends packets longer than the MTU of a real interface: with don't-fragment they are
// rejected, alone and in a group, and the small packet behind them leaves.
func TestTooBig(t *testing.T) {
	addr, mtu := narrowInterface(t)
	a, b := openPair(t, Options{Addr: netip.AddrPortFrom(addr, 0)})
	require.Equal(t, mtu, a.Caps().MTU)
	far := &wire.Path{Dst: netip.AddrPortFrom(neighbour(addr), RoCEPort)}
	batch := NewBatch(1 << 16)
	batch.Next(far, mtu)
	batch.Next(pathTo(b), 64)
	batch.Next(far, mtu)
	batch.Next(far, mtu)
	require.NoError(t, a.WriteBatch(batch))
	receive(t, b, NewDatagrams(4), 1)
	require.EqualValues(t, 3, a.Stats().SendTooBig)
	require.True(t, a.Caps().GSO)
}

// narrowInterface finds an IPv4 address on an interface with a small MTU.
func narrowInterface(t *testing.T) (netip.Addr, int) {
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range interfaces {
		if i.MTU == 0 || i.MTU > 32000 || i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		require.NoError(t, err)
		for _, a := range addrs {
			p := netip.MustParsePrefix(a.String())
			if p.Addr().Is4() && p.Bits() <= 30 {
				return p.Addr(), i.MTU
			}
		}
	}
	t.Skip("no interface with a small MTU")
	return netip.Addr{}, 0
}

// neighbour is another address of the subnet.
func neighbour(ip netip.Addr) netip.Addr {
	b := ip.As4()
	b[3] ^= 1
	if b[3] == 0 || b[3] == 3 {
		b[3] ^= 2
	}
	return netip.AddrFrom4(b)
}

// TestOverflow sends more than the receive buffer holds and checks that the lost packets are
// counted when the next datagram arrives.
func TestOverflow(t *testing.T) {
	o := loopback
	o.RecvBuffer = 32 << 10
	o.NoGSO = true
	a, b := openPair(t, o)
	require.Equal(t, 32<<10, b.Caps().RecvBuffer)
	const packets = 500
	batch, r := NewBatch(1<<20), NewDatagrams(64)
	for range packets {
		batch.Next(pathTo(b), 1000)
	}
	require.NoError(t, a.WriteBatch(batch))
	got := 0
	for n := -1; n != 0; {
		var err error
		n, err = b.ReadBatch(r)
		require.NoError(t, err)
		got += n
	}
	require.Less(t, got, packets)
	sendOne(t, a, b, 64)
	receive(t, b, r, 1)
	require.EqualValues(t, packets-got, StatsOf(b).ReceiveOverflow)
}

// TestSystemBuffers checks that SystemDefault leaves the socket buffers unchanged.
func TestSystemBuffers(t *testing.T) {
	o := loopback
	o.RecvBuffer, o.SendBuffer = SystemDefault, SystemDefault
	caps := open(t, o).Caps()
	require.Equal(t, readSysctl("rmem_default")/2, caps.RecvBuffer)
	require.Equal(t, readSysctl("wmem_default")/2, caps.SendBuffer)
}

// TestPortableBuffers checks that the portable link reports the actual size of its buffers, which
// is at most the system's limit.
func TestPortableBuffers(t *testing.T) {
	o := loopback
	o.Portable = true
	caps := open(t, o).Caps()
	require.Equal(t, min(DefaultRecvBuffer, readSysctl("rmem_max")), caps.RecvBuffer)
	require.Equal(t, min(DefaultSendBuffer, readSysctl("wmem_max")), caps.SendBuffer)
}

// TestZeroChecksumIPv6 receives a datagram without checksum, as rdma_rxe sends over IPv6.
func TestZeroChecksumIPv6(t *testing.T) {
	c := open(t, Options{Addr: netip.MustParseAddrPort("[::1]:0")})
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX, 1))
	to := &unix.SockaddrInet6{Addr: c.LocalAddr().Addr().As16(), Port: int(c.LocalAddr().Port())}
	require.NoError(t, unix.Sendto(fd, make([]byte, 24), 0, to))
	require.Len(t, receive(t, c, NewDatagrams(1), 1)[0].pkt, 24)
}

// TestReceiveAdapts checks that the length of recvmmsg follows the traffic.
func TestReceiveAdapts(t *testing.T) {
	o := loopback
	o.NoGSO = true
	a, b := openPair(t, o)
	rx := &b.(*udp).rx
	rx.limit = maxRecvMessages
	batch, r := NewBatch(4096), NewDatagrams(8)
	for range 16 {
		batch.Next(pathTo(b), 64)
	}
	require.NoError(t, a.WriteBatch(batch))
	var got, want []int
	for range 7 {
		n, err := b.ReadBatch(r)
		require.NoError(t, err)
		got, want = append(got, n), append(want, rx.want)
	}
	require.Equal(t, []int{1, 2, 4, 8, 1, 0, 0}, got)
	require.Equal(t, []int{2, 4, 8, 16, 4, 2, 1}, want)
}

// TestReceiveLimit checks that a burst does not take the memory of many slots, and that traffic
// that goes on does.
func TestReceiveLimit(t *testing.T) {
	o := loopback
	o.NoGSO = true
	a, b := openPair(t, o)
	batch, r := NewBatch(4096), NewDatagrams(8)
	for _, limit := range []int{2, 4} {
		for range 4 { // 64 datagrams: 32 calls for one each and 16 for two, then 32 for two
			batch.Reset()
			for range 16 {
				batch.Next(pathTo(b), 64)
			}
			require.NoError(t, a.WriteBatch(batch))
		}
		for n := 1; n > 0; {
			var err error
			n, err = b.ReadBatch(r)
			require.NoError(t, err)
		}
		require.Equal(t, limit, b.(*udp).rx.limit)
	}
	require.NotNil(t, r.slots[1])
	require.Nil(t, r.slots[4])
}

func TestProbe(t *testing.T) {
	p := Probe()
	require.NoError(t, p.Err)
	require.True(t, p.GSO && p.GRO && p.MMsg, "%+v", p)
	require.Equal(t, "udp-linux", p.Name)
	require.Positive(t, p.RecvBufferMax)
	require.Positive(t, p.SendBufferMax)
	require.Positive(t, p.RecvBuffer)
	require.Positive(t, p.SendBuffer)

	if taken, err := OpenUDP(Options{Addr: netip.MustParseAddrPort("127.0.0.1:4791")}); err == nil {
		defer taken.Close()
	}
	require.ErrorContains(t, Probe().RoCEPort, "port 4791 is in use")
}

// TestCloseDuringWrite closes a link during WriteBatch.
func TestCloseDuringWrite(t *testing.T) {
	for range 20 {
		a, b := openPair(t, loopback)
		entered, done := make(chan struct{}), make(chan error)
		go func() {
			batch := NewBatch(1 << 16)
			for range 20 {
				batch.Next(pathTo(b), 1000)
			}
			err := a.WriteBatch(batch)
			for close(entered); err == nil; {
				err = a.WriteBatch(batch)
			}
			done <- err
		}()
		<-entered
		require.NoError(t, a.Close())
		require.ErrorIs(t, <-done, net.ErrClosed)
	}
}

// TestRXEHoldsPort parses the files of Linux 6.1 with and without rdma_rxe.
func TestRXEHoldsPort(t *testing.T) {
	const head = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n"
	for _, c := range []struct {
		sockets string
		holds   bool
	}{
		{head + "  272: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11007 2 000000005436cbd7 0\n", true},
		{head + "  272: 00000000000000000000000000000000:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11008 2 0000000083a48c69 0\n", true},
		{head + "  272: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11007 2 000000005436cbd7 0\n", false},
		{head + "  272: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11007 2 000000005436cbd7 0\n", false},
		{head, false},
		{"", false},
	} {
		require.Equal(t, c.holds, holdsPort(c.sockets), c.sockets)
	}
	require.True(t, hasModule("crc32_pclmul 16384 0 - Live\nrdma_rxe 131072 0 - Live 0x0\n", "rdma_rxe"))
	require.False(t, hasModule("rdma_rxe_old 1 0\nib_core 2 1 rdma_rxe\n", "rdma_rxe"))
}
