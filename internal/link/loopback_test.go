package link

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/wire"
)

// modes are the options of the links; every exchange test runs with all of them.
var modes = []struct {
	name string
	set  func(*Options)
}{
	{"all", func(*Options) {}},
	{"nogso", func(o *Options) { o.NoGSO = true }},
	{"nogro", func(o *Options) { o.NoGRO = true }},
	{"nommsg", func(o *Options) { o.NoMMsg = true }},
	{"nogso,nommsg", func(o *Options) { o.NoGSO, o.NoMMsg = true, true }},
	{"nogro,nommsg", func(o *Options) { o.NoGRO, o.NoMMsg = true, true }},
	{"nogso,nogro", func(o *Options) { o.NoGSO, o.NoGRO = true, true }},
	{"nothing", func(o *Options) { o.NoGSO, o.NoGRO, o.NoMMsg = true, true, true }},
	{"portable", func(o *Options) { o.Portable = true }},
}

var families = []struct {
	name string
	ip   netip.Addr
}{
	{"v4", netip.MustParseAddr("127.0.0.1")},
	{"v6", netip.MustParseAddr("::1")},
}

// everyMode runs f with options for every mode and address family.
func everyMode(t *testing.T, f func(t *testing.T, o Options)) {
	for _, family := range families {
		for _, mode := range modes {
			t.Run(family.name+"/"+mode.name, func(t *testing.T) {
				o := Options{Addr: netip.AddrPortFrom(family.ip, 0)}
				mode.set(&o)
				f(t, o)
			})
		}
	}
}

// open opens a link that the test closes.
func open(t testing.TB, o Options) Conn {
	t.Helper()
	c, err := OpenUDP(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// pathTo returns the path to a link, with traffic class 0.
func pathTo(c Conn) *wire.Path { return &wire.Path{Dst: c.LocalAddr()} }

// fill fills a packet, except its ICRC, with bytes that identify it.
func fill(pkt []byte, seed uint64) {
	r := rand.NewPCG(seed, uint64(len(pkt)))
	for i := range pkt[:len(pkt)-4] {
		pkt[i] = byte(r.Uint64())
	}
}

// appendPacket appends a packet of n bytes, filled by fill, and returns it without its ICRC. If
// head is at least 16 the payload behind it stays outside of the batch.
func appendPacket(b *Batch, to *wire.Path, n int, seed uint64, head int) []byte {
	if head < 16 || head >= n-wire.ICRCLen {
		pkt := b.Next(to, n)
		if pkt == nil {
			return nil
		}
		fill(pkt, seed)
		return bytes.Clone(pkt[:n-wire.ICRCLen])
	}
	pkt := make([]byte, n)
	fill(pkt, seed)
	pkt = pkt[:n-wire.ICRCLen]
	room := b.NextZeroCopy(to, head, pkt[head:])
	if room == nil {
		return nil
	}
	copy(room, pkt)
	return pkt
}

// arrival is a copy of one received packet with its metadata.
type arrival struct {
	src   netip.AddrPort
	tos   uint8
	pkt   []byte
	index int // in its datagram
}

// receive reads n packets. It fails the test if none arrives for a long time.
func receive(t testing.TB, c Conn, r *Datagrams, n int) []arrival {
	t.Helper()
	var got []arrival
	for len(got) < n {
		readable, err := c.Wait(10 * time.Second)
		require.NoError(t, err)
		require.True(t, readable, "%d of %d packets arrived", len(got), n)
		_, err = c.ReadBatch(r)
		require.NoError(t, err)
		for _, d := range r.Msgs() {
			for i := range d.Count() {
				got = append(got, arrival{d.Src, d.TOS, append([]byte(nil), d.Packet(i)...), i})
			}
		}
	}
	return got
}

// TestExchange sends random packets through real sockets and checks that the same packets arrive in
// the same order, each with a valid ICRC.
func TestExchange(t *testing.T) {
	const rounds = 20
	everyMode(t, func(t *testing.T, o Options) {
		seed := rand.Uint64()
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		rnd := rand.New(rand.NewPCG(seed, 0))
		a, b := open(t, o), open(t, o)
		batch, r := NewBatch(256<<10), NewDatagrams(64)
		to, sealer := pathTo(b), wire.NewICRC(a.LocalAddr(), b.LocalAddr())
		grouped := a.Caps().GSO && b.Caps().GRO
		for round := range rounds {
			batch.Reset()
			var want [][]byte
			for size := 16; ; {
				if rnd.IntN(3) == 0 {
					size = 16 + rnd.IntN(1<<(4+rnd.IntN(10)))
				}
				if len(want) == 200 {
					break
				}
				pkt := appendPacket(batch, to, size, uint64(round<<16+len(want)), 4*rnd.IntN(20))
				if pkt == nil {
					break
				}
				want = append(want, pkt)
			}
			require.NoError(t, a.WriteBatch(batch))
			got := receive(t, b, r, batch.Len())
			require.Len(t, got, batch.Len())
			for i, g := range got {
				require.Equal(t, want[i], g.pkt[:len(g.pkt)-wire.ICRCLen], "packet %d of round %d", i, round)
				_, sent := batch.Packet(i)
				require.Equal(t, sent, g.pkt, "packet %d of round %d", i, round)
				require.Equal(t, a.LocalAddr(), g.src)
				check, id := sealer.Check(g.pkt, batch.ID(i))
				require.Equal(t, wire.ICRCExact, check, fmt.Sprint(id))
				if grouped {
					require.Equal(t, int(batch.ID(i)), g.index, "GRO keeps the groups")
				}
			}
		}
	})
}

// TestManyDestinations sends one batch to several links, in turn and in runs.
func TestManyDestinations(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		const peers, packets = 5, 300
		from := open(t, o)
		batch := NewBatch(1 << 20)
		var links [peers]Conn
		var paths [peers]*wire.Path
		for i := range links {
			links[i] = open(t, o)
			paths[i] = pathTo(links[i])
		}
		var sent [peers][][]byte
		for i := range packets {
			to := i % peers
			if i%100 < 60 {
				to = i / 60 % peers
			}
			pkt := batch.Next(paths[to], 16+i)
			fill(pkt, uint64(i))
			sent[to] = append(sent[to], pkt)
		}
		require.NoError(t, from.WriteBatch(batch))
		for i, l := range links {
			r := NewDatagrams(16)
			for k, g := range receive(t, l, r, len(sent[i])) {
				require.Equal(t, sent[i][k], g.pkt)
			}
		}
		require.EqualValues(t, packets, StatsOf(from).SentPackets)
		require.EqualValues(t, batch.Bytes(), StatsOf(from).SentBytes)
		n, err := links[0].ReadBatch(NewDatagrams(1))
		require.NoError(t, err)
		require.Zero(t, n, "what was received is counted when there is nothing more")
		require.EqualValues(t, len(sent[0]), StatsOf(links[0]).ReceivedPackets)

		tx, rx := StatsOf(from), StatsOf(links[0])
		require.Positive(t, tx.SendCalls)
		require.LessOrEqual(t, tx.SendCalls, uint64(packets))
		require.Positive(t, rx.ReceivedDatagrams)
		require.LessOrEqual(t, rx.ReceivedDatagrams, rx.ReceivedPackets)
		require.Positive(t, rx.ReceiveCalls)
	})
}

// TestTrafficClass sends packets of several classes, one of which is the socket's own, and checks
// the class of each received packet.
func TestTrafficClass(t *testing.T) {
	for _, own := range []uint8{0, 0x68} {
		everyMode(t, func(t *testing.T, o Options) {
			o.TOS = own
			a, b := open(t, o), open(t, o)
			if o.Portable && a.LocalAddr().Addr().Is4() {
				t.Skip("the portable link cannot read the TOS of IPv4")
			}
			batch := NewBatch(4096)
			want := []uint8{own, 2, 2, 3, own, own, 0, 0x68, 0xC2}
			for _, class := range want {
				batch.Next(&wire.Path{Dst: b.LocalAddr(), TrafficClass: class}, 64)
			}
			require.NoError(t, a.WriteBatch(batch))
			var got []uint8
			for _, g := range receive(t, b, NewDatagrams(8), len(want)) {
				got = append(got, g.tos)
			}
			require.Equal(t, want, got)
		})
	}
}

// TestNoAllocation sends and receives a batch of three groups.
func TestNoAllocation(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		a, b := open(t, o), open(t, o)
		batch, r, to := NewBatch(1<<16), NewDatagrams(64), pathTo(b)
		marked := &wire.Path{Dst: b.LocalAddr(), TrafficClass: 2}
		lap := func() {
			batch.Reset()
			for range 5 {
				batch.Next(to, 1000)
			}
			batch.Next(to, 24)
			batch.Next(to, 20)
			batch.Next(marked, 20)
			if a.WriteBatch(batch) != nil {
				panic("closed")
			}
			for got := 0; got < batch.Len(); {
				if _, err := b.Wait(-1); err != nil {
					panic("closed")
				}
				b.ReadBatch(r)
				for i := range r.Msgs() {
					got += r.Msgs()[i].Count()
				}
			}
		}
		if o.Portable {
			marked = to // a change of class costs the portable link a call
		}
		for range 20 {
			lap()
		}
		require.Zero(t, testing.AllocsPerRun(50, lap))
	})
}

// TestOrder is for the race detector: writes of the sender before WriteBatch happen before
// ReadBatch of the receiver returns the packet.
func TestOrder(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		from, to := open(t, o), open(t, o)
		var done int
		go func() {
			b := NewBatch(4096)
			done = 1
			fill(b.Next(pathTo(to), 64), 1)
			_ = from.WriteBatch(b)
		}()
		receive(t, to, NewDatagrams(1), 1)
		require.Equal(t, 1, done)
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
