package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// marked sets the congestion mark in a packet's IP header.
func marked(pkt *wire.Packet) *wire.Packet {
	pkt.TOS |= 3
	return pkt
}

// TestCNPIsSentOnMarks checks that a marked packet causes a CNP to the sender's queue pair, at most
// one each 50 us, and that all are counted.
func TestCNPIsSentOnMarks(t *testing.T) {
	for _, typ := range rcuc {
		p := connect(t, ofType(typ))
		write := func() *wire.Packet {
			p.a.post(p.now, p.write(1, 0, 0, 8))
			return p.drain(p.a)[0]
		}
		cnps := func() (n int) {
			for _, pkt := range p.drain(p.b) {
				if pkt.Info.Class == wire.ClassCNP {
					n++
					require.Equal(t, wire.BTH{Opcode: wire.CNP, PKey: 0xffff, BECN: true, DestQPN: p.a.Num()}, pkt.BTH)
					require.Equal(t, make([]byte, 16), pkt.Raw[wire.BTHLen:wire.CNPLen-wire.ICRCLen])
				}
			}
			return n
		}
		p.now = 1 << 30
		require.Equal(t, wire.DropNone, p.deliver(p.b, marked(write())))
		require.Equal(t, 1, cnps())
		p.deliver(p.b, marked(write()), marked(write()))
		require.Zero(t, cnps(), "too early")
		p.now += 50 * reliability.Microsecond
		pkt := write()
		pkt.TOS = 2 // ECT(0)
		p.deliver(p.b, pkt)
		require.Zero(t, cnps(), "capable, not marked")
		pkt = write()
		pkt.BTH.FECN = true
		p.deliver(p.b, pkt)
		require.Equal(t, 1, cnps(), "marked in the BTH")
		require.EqualValues(t, 2, p.b.Counters().CNPSent)
		require.EqualValues(t, 4, p.b.Counters().ECNMarked)
	}
}

// TestCNPWaitsForRoom checks that a CNP waits for space in a batch, and that datagrams cause none.
func TestCNPWaitsForRoom(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 8))
	p.deliver(p.b, marked(p.drain(p.a)[0]))
	require.True(t, p.b.Drain(p.now, &batch{}))
	require.Len(t, p.drain(p.b), 2)

	p = connect(t, ofType(verbs.UD))
	p.b.recv(9, 0, 100)
	p.a.post(p.now, p.datagram(1, 8))
	p.deliver(p.b, marked(p.drain(p.a)[0]))
	require.Empty(t, p.drain(p.b))
	require.EqualValues(t, 1, p.b.Counters().ECNMarked)
}

// TestCNPShrinksTheWindow checks that a received CNP is counted and shrinks the window, once a
// round trip.
func TestCNPShrinksTheWindow(t *testing.T) {
	p := connect(t)
	cnp := func() *wire.Packet {
		raw := make([]byte, wire.CNPLen)
		wire.PutCNP(raw, p.a.Num())
		pkt := &wire.Packet{Src: p.b.addr, Dst: p.a.addr}
		require.Equal(t, wire.DropNone, pkt.Parse(raw))
		return pkt
	}
	size := p.a.window.Size()
	p.now = 1 << 30
	require.Equal(t, wire.DropNone, p.deliver(p.a, cnp()))
	require.Equal(t, size*7/10, p.a.window.Size())
	p.deliver(p.a, cnp())
	require.Equal(t, size*7/10, p.a.window.Size())
	p.now += 50 * reliability.Microsecond
	p.deliver(p.a, cnp())
	require.Equal(t, size*7/10*7/10, p.a.window.Size())
	require.EqualValues(t, 3, p.a.Counters().CNPReceived)
	require.Empty(t, p.drain(p.a))
	require.Empty(t, p.a.raised())

	stranger := cnp()
	stranger.Src = p.a.addr
	require.Equal(t, wire.DropWrongSource, p.deliver(p.a, stranger))
}

// TestBursts checks that a message that waits for the window continues in bursts: when a quarter of
// the window is free, or enough for the remaining packets. The last packet of a burst requests an
// acknowledgement, so that the window moves.
func TestBursts(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU1024), func(o *options) {
		o.attr = func(a *verbs.QPAttr) { a.AV.PeerBuffer = 16 << 10 }
	})
	p.a.post(p.now, p.write(1, 0, 0, 40<<10))
	all := p.drain(p.a)
	require.Less(t, len(all), 40)
	require.True(t, all[len(all)-1].BTH.AckReq, "the window is used up")
	acked := 0
	ack := func(n int) []*wire.Packet {
		acked += n
		p.deliver(p.a, p.response(p.b, wire.RCAck, acked-1, 0x1f, nil))
		pkts := p.drain(p.a)
		all = append(all, pkts...)
		return pkts
	}
	require.Empty(t, ack(5), "less than a quarter is free")
	burst := ack(2)
	require.GreaterOrEqual(t, len(burst), 6)
	require.True(t, burst[len(burst)-1].BTH.AckReq)
	for len(all) < 39 {
		ack(1)
	}
	ack(3)
	require.Len(t, all, 40, "the last packet needs no more room than its own")
	require.True(t, all[39].BTH.AckReq)
}

// TestWindowBoundsBytesInFlight checks that the window grows with acknowledged bytes, and that a
// message never has more in flight, except for one packet that requests an acknowledgement.
func TestWindowBoundsBytesInFlight(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU1024), func(o *options) {
		o.attr = func(a *verbs.QPAttr) { a.AV.PeerBuffer = 16 << 10 }
	})
	p.a.post(p.now, p.write(1, 0, 0, regionBytes))
	most := 32<<10 + 1024 + PacketCost
	for len(p.a.wcs) == 0 {
		pkts := p.drain(p.a)
		require.LessOrEqual(t, p.a.unackedBytes(), most)
		require.NotEmpty(t, pkts)
		p.deliver(p.b, pkts...)
		p.deliver(p.a, p.drain(p.b)...)
	}
}
