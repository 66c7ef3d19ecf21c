package memory

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

var (
	addrA = netip.MustParseAddrPort("10.0.0.1:4791")
	addrB = netip.MustParseAddrPort("10.0.0.2:4791")
	addrC = netip.MustParseAddrPort("10.0.0.3:4791")
	pathA = &wire.Path{Dst: addrA}
	pathB = &wire.Path{Dst: addrB, TrafficClass: 0x62}
)

// attach opens a link, which must succeed.
func attach(t testing.TB, n interface {
	Attach(netip.AddrPort, Options) (*Conn, error)
}, addr netip.AddrPort, o Options) *Conn {
	t.Helper()
	c, err := n.Attach(addr, o)
	require.NoError(t, err)
	return c
}

// appendPacket appends a packet of n bytes with the given number to a batch.
func appendPacket(b *link.Batch, to *wire.Path, n int, number uint32) {
	pkt := b.Next(to, n)
	clear(pkt)
	binary.BigEndian.PutUint32(pkt[8:], number)
}

// send sends packets of n bytes, numbered from 0, as one batch.
func send(t testing.TB, c *Conn, to *wire.Path, n, packets int) {
	t.Helper()
	b := link.NewBatch(1 << 20)
	for i := range packets {
		appendPacket(b, to, n, uint32(i))
	}
	require.NoError(t, c.WriteBatch(b))
}

// got is a received packet.
type got struct {
	number uint32
	id     uint16
	merged int // packets in its datagram
}

// read returns the packets that c has received, and checks source, traffic class and ICRC.
func read(t testing.TB, c *Conn, src netip.AddrPort) (all []got) {
	t.Helper()
	r := link.NewDatagrams(4)
	s := wire.NewICRC(src, c.LocalAddr())
	for {
		n, err := c.ReadBatch(r)
		require.NoError(t, err)
		if n == 0 {
			return all
		}
		for _, d := range r.Msgs() {
			require.Equal(t, src, d.Src)
			require.Equal(t, pathB.TrafficClass, d.TOS)
			for i := range d.Count() {
				pkt, id := d.Packet(i), d.ID+uint16(i)
				result, _ := s.Check(pkt, id)
				require.Equal(t, wire.ICRCExact, result)
				all = append(all, got{binary.BigEndian.Uint32(pkt[8:]), id, d.Count()})
			}
		}
	}
}

func TestGroups(t *testing.T) {
	tests := []struct {
		name     string
		from, to Options
		want     []got
	}{
		{"merged", Options{}, Options{}, []got{{0, 0, 3}, {1, 1, 3}, {2, 2, 3}}},
		{"split by the receiver", Options{}, Options{NoGRO: true}, []got{{0, 0, 1}, {1, 1, 1}, {2, 2, 1}}},
		{"single from the sender", Options{NoGSO: true}, Options{}, []got{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := New(1)
			a, b := attach(t, n, addrA, test.from), attach(t, n, addrB, test.to)
			require.Equal(t, link.Caps{
				GSO: !test.from.NoGSO, GRO: true, RecvBuffer: link.DefaultRecvBuffer,
				SendBuffer: link.DefaultSendBuffer, MTU: DefaultMTU, ExactID: true, Name: "memory",
			}, a.Caps())
			batch := link.NewBatch(1 << 16)
			appendPacket(batch, pathB, 100, 0)
			appendPacket(batch, pathB, 100, 1)
			appendPacket(batch, pathB, 60, 2) // the last may be shorter
			require.NoError(t, a.WriteBatch(batch))
			n.AdvanceTo(int64(DefaultDelay))
			require.Equal(t, test.want, read(t, b, addrA))
			require.EqualValues(t, 3, a.Stats().SentPackets)
			require.EqualValues(t, 260, a.Stats().SentBytes)
			require.EqualValues(t, 3, b.Stats().ReceivedPackets)
			require.EqualValues(t, 260, b.Stats().ReceivedBytes)
		})
	}
}

func TestVirtualTime(t *testing.T) {
	n := New(1)
	a := attach(t, n, addrA, Options{})
	b := attach(t, n, addrB, Options{Delay: 5 * time.Microsecond})
	_, ok := n.NextEvent()
	require.False(t, ok)
	require.Zero(t, n.Now())

	send(t, a, pathB, 100, 1)
	var order []string
	n.ScheduleAt(7000, func() { order = append(order, "seven") })
	n.ScheduleAt(5000, func() {
		require.True(t, b.Readable(), "sent before the change")
		require.EqualValues(t, 5000, n.Now())
		order = append(order, "five")
		n.ScheduleAt(100, func() { order = append(order, "past") })
		n.ScheduleAt(6000, func() { order = append(order, "six") })
	})
	next, ok := n.NextEvent()
	require.True(t, ok)
	require.EqualValues(t, 5000, next)

	n.AdvanceTo(4999)
	require.EqualValues(t, 4999, n.Now())
	require.False(t, b.Readable())
	require.Empty(t, order)
	n.AdvanceTo(6500)
	require.Equal(t, []string{"five", "past", "six"}, order)
	require.EqualValues(t, 6500, n.Now())
	n.AdvanceTo(10)
	require.EqualValues(t, 6500, n.Now(), "the clock never goes back")
	n.AdvanceTo(7000)
	require.Equal(t, "seven", order[3])
	require.Len(t, read(t, b, addrA), 1)

	readable, err := b.Wait(-1)
	require.NoError(t, err)
	require.False(t, readable, "Wait does not block")
}

func TestRate(t *testing.T) {
	n := New(1)
	a := attach(t, n, addrA, Options{})
	// 1000 bytes with their headers take 8 us.
	b := attach(t, n, addrB, Options{Delay: time.Microsecond, Rate: 1e9, Queue: 3000, NoGRO: true})
	for range 5 {
		send(t, a, pathB, 972, 1)
	}
	var arrivals []int64
	for at, ok := n.NextEvent(); ok; at, ok = n.NextEvent() {
		arrivals = append(arrivals, at)
		n.AdvanceTo(at)
		require.Len(t, read(t, b, addrA), 1)
	}
	require.Equal(t, []int64{9000, 17000, 25000}, arrivals)
	require.EqualValues(t, 2, b.Stats().ReceiveOverflow, "no room in the queue")

	send(t, a, pathB, 972, 5)
	n.AdvanceTo(n.Now() + 25000)
	require.Equal(t, []got{{0, 0, 1}, {1, 1, 1}, {2, 2, 1}}, read(t, b, addrA), "the first ones of a group fit")
	require.EqualValues(t, 4, b.Stats().ReceiveOverflow)
}

func TestReceiveBuffer(t *testing.T) {
	n := New(1)
	a := attach(t, n, addrA, Options{})
	b := attach(t, n, addrB, Options{RecvBuffer: 1000})
	send(t, a, pathB, 1000, 2) // a group: more than the buffer, but it is empty
	send(t, a, pathB, 100, 3)
	n.AdvanceTo(10_000)
	require.EqualValues(t, 3, b.Stats().ReceiveOverflow)
	require.Len(t, read(t, b, addrA), 2)
	for range 11 {
		send(t, a, pathB, 100, 1)
	}
	n.AdvanceTo(20_000)
	require.EqualValues(t, 4, b.Stats().ReceiveOverflow)
	require.Len(t, read(t, b, addrA), 10)
}

func TestNoReceiver(t *testing.T) {
	n := New(1)
	a := attach(t, n, addrA, Options{MTU: 1500})
	send(t, a, pathB, 100, 2)
	require.EqualValues(t, 2, a.Stats().SendUnreachable)

	b := attach(t, n, addrB, Options{})
	send(t, a, pathB, 100, 3)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	n.AdvanceTo(10_000)
	require.EqualValues(t, 5, a.Stats().SendUnreachable, "closed while they were on their way")

	b = attach(t, n, addrB, Options{})
	send(t, a, pathB, 1473, 1)
	send(t, a, pathB, 1472, 1)
	n.AdvanceTo(20_000)
	require.EqualValues(t, 1, a.Stats().SendTooBig)
	require.Len(t, read(t, b, addrA), 1)
}

func TestClosed(t *testing.T) {
	c := attach(t, New(1), addrA, Options{})
	require.NoError(t, c.Close())
	_, err := c.ReadBatch(link.NewDatagrams(1))
	require.ErrorContains(t, err, "closed")
	_, err = c.Wait(0)
	require.ErrorContains(t, err, "closed")
	require.ErrorContains(t, c.WriteBatch(link.NewBatch(100)), "closed")
}

func TestAttach(t *testing.T) {
	n := New(1)
	attach(t, n, addrA, Options{})
	mapped := netip.AddrPortFrom(netip.AddrFrom16(addrA.Addr().As16()), addrA.Port())
	bad := []struct {
		addr netip.AddrPort
		o    Options
		want string
	}{
		{addrA, Options{}, "10.0.0.1:4791 is in use"},
		{mapped, Options{}, "10.0.0.1:4791 is in use"},
		{netip.MustParseAddrPort("0.0.0.0:1"), Options{}, "definite unicast"},
		{netip.MustParseAddrPort("[ff02::1]:1"), Options{}, "definite unicast"},
		{netip.AddrPort{}, Options{}, "definite unicast"},
		{addrB, Options{Delay: -1}, "negative"},
		{addrB, Options{Queue: 1}, "without a Rate"},
		{addrB, Options{Queue: maxQueue + 1, Rate: 1}, "at most"},
	}
	for _, test := range bad {
		_, err := n.Attach(test.addr, test.o)
		require.ErrorContains(t, err, test.want)
	}
	_, err := NewLive().Attach(addrA, Options{Rate: 1})
	require.ErrorContains(t, err, "simulated clock")

	any := netip.AddrPortFrom(addrA.Addr(), 0)
	first, second := attach(t, n, any, Options{}), attach(t, n, any, Options{})
	require.Equal(t, netip.MustParseAddrPort("10.0.0.1:49152"), first.LocalAddr())
	require.Equal(t, netip.MustParseAddrPort("10.0.0.1:49153"), second.LocalAddr())
}

func TestNoAllocation(t *testing.T) {
	n := New(1)
	a := attach(t, n, addrA, Options{})
	b := attach(t, n, addrB, Options{})
	batch, r := link.NewBatch(1<<16), link.NewDatagrams(4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		batch.Reset()
		for i := range 10 {
			appendPacket(batch, pathB, 100, uint32(i))
		}
		appendPacket(batch, pathB, 200, 0)
		a.WriteBatch(batch)
		n.AdvanceTo(n.Now() + 1000)
		b.ReadBatch(r)
	}))
}

// TestQueueReuse never lets the receive queue become empty.
func TestQueueReuse(t *testing.T) {
	n := New(1)
	a := attach(t, n, addrA, Options{})
	b := attach(t, n, addrB, Options{})
	r := link.NewDatagrams(1)
	send(t, a, pathB, 100, 1)
	for range 1000 {
		send(t, a, pathB, 100, 1)
		n.AdvanceTo(n.Now() + 1000)
		count, err := b.ReadBatch(r)
		require.NoError(t, err)
		require.Equal(t, 1, count)
		require.True(t, b.Readable())
	}
	require.Less(t, cap(b.queue), 16)
}

// trace runs three links that send to one another at random, and returns a log of all packets
// received.
func trace(t *testing.T, seed uint64) []byte {
	n := New(seed)
	var conns []*Conn
	for i, addr := range []netip.AddrPort{addrA, addrB, addrC} {
		conns = append(conns, attach(t, n, addr, Options{
			Delay: time.Duration(1+i) * time.Microsecond, Rate: 1e9, Queue: 20_000, NoGRO: i == 2,
		}))
	}
	var log bytes.Buffer
	batch, r := link.NewBatch(1<<16), link.NewDatagrams(2)
	talk := func(c *Conn) {
		batch.Reset()
		for range n.Rand().IntN(6) {
			to := conns[n.Rand().IntN(len(conns))].LocalAddr()
			appendPacket(batch, &wire.Path{Dst: to}, 100+100*n.Rand().IntN(3), n.Rand().Uint32())
		}
		require.NoError(t, c.WriteBatch(batch))
	}
	for i := range 20 {
		n.ScheduleAt(int64(i)*700, func() { talk(conns[i%3]) })
	}
	for at, ok := n.NextEvent(); ok && at < 1_000_000; at, ok = n.NextEvent() {
		n.AdvanceTo(at)
		for _, c := range conns {
			for c.Readable() {
				_, err := c.ReadBatch(r)
				require.NoError(t, err)
				for _, d := range r.Msgs() {
					fmt.Fprintf(&log, "%d %v %v %d %x\n", at, d.Src, c.LocalAddr(), d.ID, d.Buf)
				}
				talk(c)
			}
		}
	}
	return log.Bytes()
}

func TestOneSeedIsOneRun(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	first := trace(t, seed)
	require.Greater(t, bytes.Count(first, []byte("\n")), 20)
	require.Equal(t, first, trace(t, seed))
	require.NotEqual(t, first, trace(t, seed+1))
}
