package qp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/congestion"
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

// controlled returns a pair with a congestion control. The peers know each other's receive buffer.
func controlled(t *testing.T, mode congestion.Mode) *pair {
	return connect(t, func(o *options) {
		o.config = func(c *Config) { c.Congestion = mode }
		o.attr = func(a *verbs.QPAttr) { a.AV.PeerBuffer = 1 << 20 }
	})
}

// TestCapableOnlyIfControlled checks that packets are ECN-capable only with a control that reacts to
// marks, and only to peers that send notifications.
func TestCapableOnlyIfControlled(t *testing.T) {
	require.Zero(t, controlled(t, congestion.Off).a.path.TrafficClass)
	require.Zero(t, controlled(t, congestion.Delay).a.path.TrafficClass)
	require.EqualValues(t, ecnCapable, controlled(t, congestion.Auto).a.path.TrafficClass)
	require.EqualValues(t, ecnCapable, controlled(t, congestion.DCQCN).a.path.TrafficClass)
	unknown := connect(t, func(o *options) { o.config = func(c *Config) { c.Congestion = congestion.Auto } })
	require.Zero(t, unknown.a.path.TrafficClass, "rxe sends none")
	require.NotNil(t, unknown.a.sending, "but its acknowledgements have a delay")
}

// sendNow lets the requests of a and the acknowledgements of b arrive, one way in half a round trip,
// until a has nothing to send now, and returns the number of data packets.
func (p *pair) sendNow(rtt reliability.Time) (packets int) {
	for pkts := p.drain(p.a); len(pkts) > 0; pkts = p.drain(p.a) {
		packets += len(pkts)
		p.now += rtt / 2
		p.deliver(p.b, pkts...)
		p.now += rtt / 2
		p.deliver(p.a, p.drain(p.b)...)
	}
	return packets
}

// cnp returns a notification from b to a.
func (p *pair) cnp() *wire.Packet {
	raw := make([]byte, wire.CNPLen)
	wire.PutCNP(raw, p.a.Num())
	pkt := &wire.Packet{Src: p.b.addr, Dst: p.a.addr}
	require.Equal(p.t, wire.DropNone, pkt.Parse(raw))
	return pkt
}

// TestPacedRequests checks that after notifications the requests leave in bursts at the times that
// Deadline announces, all of them, and that the reductions are counted and recorded.
func TestPacedRequests(t *testing.T) {
	p := controlled(t, congestion.Auto)
	p.now = 1 << 30
	p.a.post(p.now, p.write(1, 0, 0, regionBytes))
	p.sendNow(100 * reliability.Microsecond)
	require.Len(t, p.a.takeCompletions(), 1)
	p.a.post(p.now, p.write(2, 0, 0, regionBytes))
	for range 20 {
		p.deliver(p.a, p.cnp())
		p.now += reliability.Millisecond / 2
		p.sendNow(100 * reliability.Microsecond)
	}
	c := p.a.Counters()
	require.EqualValues(t, 20, c.CNPReceived)
	require.Positive(t, c.RateReductions)
	require.LessOrEqual(t, c.RateReductions, c.CNPReceived)
	records := p.a.Records()
	last := records[0].Text
	for _, r := range records {
		if strings.HasPrefix(r.Text, "rate ") {
			last = r.Text
		}
	}
	require.Contains(t, last, "Mbit/s after a congestion notification")

	for i := 3; len(p.a.takeCompletions()) == 0 || i < 6; i++ {
		require.Less(t, i, 1000)
		if sent, _ := p.a.Queued(); sent == 0 {
			p.a.post(p.now, p.write(uint64(i), 0, 0, regionBytes))
		}
		if p.sendNow(100*reliability.Microsecond) == 0 {
			at := p.a.Deadline()
			require.Greater(t, at, p.now, "Drain has more to send later")
			p.now = at
			p.a.Advance(p.now)
		}
	}
	require.Positive(t, p.a.Counters().PacingStalls)
	require.Zero(t, p.a.Counters().Timeouts)
}

// TestPacedResponses checks that notifications pace read responses, whose acknowledgements stay
// behind them, also of a queue pair that sends no requests.
func TestPacedResponses(t *testing.T) {
	p := controlled(t, congestion.Auto)
	p.now = 1 << 30
	read := func(id uint64) {
		wr := p.write(id, 0, 0, regionBytes)
		wr.Opcode = verbs.WRRDMARead
		p.a.post(p.now, wr)
	}
	read(1)
	p.deliver(p.b, p.drain(p.a)...)
	responses := p.drain(p.b)
	require.NotEmpty(t, responses)
	p.now += 100 * reliability.Microsecond
	p.deliver(p.a, responses...)
	for range 60 {
		pkt := p.cnp()
		pkt.Src, pkt.BTH.DestQPN = p.a.addr, p.b.Num()
		p.deliver(p.b, pkt)
		p.now += 200 * reliability.Microsecond
	}
	require.Positive(t, p.b.Counters().RateReductions)
	require.Len(t, p.a.takeCompletions(), 1)
	read(2)
	for range 1000 {
		if len(p.a.wcs) > 0 {
			break
		}
		p.deliver(p.b, p.drain(p.a)...)
		pkts := p.drain(p.b)
		if len(pkts) == 0 {
			at := p.b.Deadline()
			require.Greater(t, at, p.now)
			p.now = at
			p.b.Advance(p.now)
			continue
		}
		p.deliver(p.a, pkts...)
	}
	require.Equal(t, []string{"2 RDMA_READ len=65536"}, p.a.takeCompletions())
	require.Positive(t, p.b.Counters().PacingStalls)
	require.Zero(t, p.a.Counters().CompleterRetryErr)
}

// A slowPacer is a Controller that lets one packet pass each millisecond.
type slowPacer struct {
	congestion.Controller
	next reliability.Time
}

func (s *slowPacer) OnSent(now reliability.Time, _ int)         { s.next = now + reliability.Millisecond }
func (s *slowPacer) NextSend(reliability.Time) reliability.Time { return s.next }
func (s *slowPacer) OnAck(reliability.Time, congestion.Ack)     {}

// TestPacerTakesTurns checks that responses and requests pass the pacer in turns, so that a long
// response does not hold back a request until its peer gives up.
func TestPacerTakesTurns(t *testing.T) {
	p := controlled(t, congestion.Auto)
	p.now = 1 << 30
	p.b.sending = &slowPacer{Controller: p.b.sending}
	p.a.post(p.now, p.read(1, 0, 0, 16<<10))
	p.deliver(p.b, p.drain(p.a)...)
	write := p.write(2, 0, 0, 2<<10)
	write.SGList, write.RemoteAddr, write.RKey = []verbs.SGE{p.b.sge(0, 2<<10)}, p.a.base, p.a.key
	p.b.post(p.now, write)
	var requests []bool
	for range 16 {
		pkts := p.drain(p.b)
		require.Len(t, pkts, 1)
		requests = append(requests, pkts[0].Info.Request)
		p.deliver(p.a, pkts...)
		p.now += reliability.Millisecond
	}
	for i := range 2 * (2 << 10) / int(p.b.mtu) {
		require.Equal(t, i%2 == 1, requests[i], requests)
	}
}
