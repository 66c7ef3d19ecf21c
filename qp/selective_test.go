package qp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/congestion"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// selectively connects with selective retransmission.
func selectively(a *verbs.QPAttr) { a.AV.PeerBuffer, a.AV.Selective = 1<<20, true }

// selectiveAck returns a selective acknowledgement of b up to psn with these blocks, both relative
// to the initial PSN of a.
func (p *pair) selectiveAck(psn int, blocks ...wire.SackBlock) *wire.Packet {
	s := wire.SelectiveAck{}
	for _, b := range blocks {
		s.Blocks = append(s.Blocks, wire.SackBlock{PSN: (wire.PSN(p.psn[0]) + b.PSN) & wire.PSNMask, Arrived: b.Arrived})
	}
	payload := make([]byte, s.Len())
	s.Put(payload)
	return p.response(p.b, wire.RCSelectiveAck, psn, wire.AckSyndrome(wire.CreditUnlimited), payload)
}

// TestSelectiveRetransmission checks that only the lost packets of a message are sent again, that
// the responder places the others, and that it keeps the last one.
func TestSelectiveRetransmission(t *testing.T) {
	p := connect(t, withAttr(selectively))
	copy(p.a.buf, bytes.Repeat([]byte("0123456789"), 200))
	p.a.post(p.now, p.write(7, 0, 0, 2000))
	pkts := p.drain(p.a)
	require.Len(t, pkts, 8)
	for _, i := range []int{0, 2, 3, 5, 6, 7} {
		require.Equal(t, wire.DropNone, p.deliver(p.b, pkts[i]))
	}
	require.Equal(t, p.a.buf[512:1024], p.b.buf[512:1024], "placed at once")
	require.Equal(t, make([]byte, 208), p.b.buf[7*256:2000], "the last packet is kept")
	acks := p.drain(p.b)
	require.Len(t, acks, 1)
	require.Equal(t, wire.OpSelectiveAck, acks[0].Info.Operation)
	p.now += 1 << 20
	p.deliver(p.a, acks...)
	p.now += 1 << 20
	p.a.Advance(p.now)
	again := p.drain(p.a)
	require.Equal(t, []string{"WRITE_ONLY 1 len=256 @100+256 A", "WRITE_ONLY 4 len=256 @400+256 A"}, p.describePackets(p.a, again))
	p.deliver(p.b, again...)
	require.Equal(t, p.a.buf[:2000], p.b.buf[:2000])
	p.deliver(p.a, p.drain(p.b)...)
	require.Equal(t, []string{"7 RDMA_WRITE len=2000"}, p.a.takeCompletions())
	k := p.a.Counters()
	require.Equal(t, []uint64{2, 1, 0}, []uint64{k.Retransmitted, k.RcvdSacks, k.Timeouts})
	require.EqualValues(t, 5, p.b.Counters().KeptRequests)
}

// TestLateWriteLeavesLaterOnes checks that a write that is sent again does not overwrite what later
// ones to the same place have stored.
func TestLateWriteLeavesLaterOnes(t *testing.T) {
	p := connect(t, withAttr(selectively))
	for i := range 1024 {
		p.a.buf[i], p.a.buf[1024+i] = 1, 2
	}
	p.a.post(p.now, p.write(1, 0, 0, 1024), p.write(2, 1024, 100, 1024))
	pkts := p.drain(p.a)
	require.Len(t, pkts, 8)
	p.deliver(p.b, pkts[1:]...)
	p.deliver(p.b, pkts[0])
	want := append(bytes.Repeat([]byte{1}, 100), bytes.Repeat([]byte{2}, 1024)...)
	require.Equal(t, want, p.b.buf[:1124])
	p.deliver(p.a, p.drain(p.b)...)
	require.Equal(t, []string{"1 RDMA_WRITE len=1024", "2 RDMA_WRITE len=1024"}, p.a.takeCompletions())
}

// TestForgedSelectiveAck checks that a selective acknowledgement that cannot be true changes
// nothing, and that one that is false delays at most: a timeout sends everything again.
func TestForgedSelectiveAck(t *testing.T) {
	p := connect(t, withAttr(selectively))
	p.a.post(p.now, p.write(1, 0, 0, 1024))
	require.Len(t, p.drain(p.a), 4) // all are lost
	for name, forged := range map[string]*wire.Packet{
		"not in flight":            p.selectiveAck(-1, wire.SackBlock{PSN: 1, Arrived: 1 << 3}),
		"far ahead":                p.selectiveAck(-1, wire.SackBlock{PSN: 1 << 20, Arrived: 1}),
		"acknowledged":             p.selectiveAck(1, wire.SackBlock{PSN: 0, Arrived: 1}),
		"expected":                 p.selectiveAck(-1, wire.SackBlock{PSN: 0, Arrived: 1}),
		"second block":             p.selectiveAck(-1, wire.SackBlock{PSN: 1, Arrived: 1}, wire.SackBlock{PSN: 64, Arrived: 1}),
		"everything before":        p.selectiveAck(-3),
		"more than was sent":       p.selectiveAck(4),
		"no selective ack at all":  p.response(p.b, wire.RCSelectiveAck, -1, wire.AckSyndrome(0), []byte{1, 2, 3}),
		"blocks without a payload": p.response(p.b, wire.RCSelectiveAck, -1, wire.AckSyndrome(0), []byte{0, 2, 0, 0}),
	} {
		before := *p.a.sel
		require.Equal(t, wire.DropGhostResponse, p.deliver(p.a, forged), name)
		require.Equal(t, before.arrivedBytes, p.a.sel.arrivedBytes, name)
		require.False(t, p.a.sel.requests.Active(), name)
		require.Empty(t, p.drain(p.a), name)
	}
	nak := p.selectiveAck(-1)
	nak.Raw[wire.BTHLen] = uint8(wire.NakRemoteAccess)
	require.Equal(t, wire.DropWrongTransport, p.deliver(p.a, nak))

	require.Equal(t, wire.DropNone, p.deliver(p.a, p.selectiveAck(-1, wire.SackBlock{PSN: 0, Arrived: 0xe})), "a lie that may be true")
	for p.a.Deadline() != 0 {
		p.advanceToDeadline(p.a)
		p.exchange()
	}
	require.Equal(t, []string{"1 RDMA_WRITE len=1024"}, p.a.takeCompletions())
	require.Equal(t, p.a.buf[:1024], p.b.buf[:1024])
}

// A lossCounter is a Controller with a large window that counts losses.
type lossCounter struct {
	congestion.Controller
	losses int
}

// Window implements congestion.Controller.
func (l *lossCounter) Window() int { return 1 << 20 }

// OnLoss implements congestion.Controller.
func (l *lossCounter) OnLoss(reliability.Time) bool {
	l.losses++
	return false
}

// TestLossesReachTheControllers checks that congestion control learns of each lost packet, not only
// of many: a flow that fills the buffer of a path would otherwise grow until it starves others.
func TestLossesReachTheControllers(t *testing.T) {
	p := connect(t, withAttr(selectively), withConfig(func(c *Config) { c.Congestion = congestion.Auto }))
	sending, reading := &lossCounter{Controller: p.a.sending}, &lossCounter{Controller: p.a.reading}
	p.a.sending, p.a.reading = sending, reading
	p.a.window.SetSize(1 << 20)
	p.a.readWindow.SetSize(1 << 20)
	p.a.post(p.now, p.write(1, 0, 0, 256), p.write(2, 0, 0, 256), p.write(3, 0, 0, 256), p.write(4, 0, 0, 256), p.write(5, 0, 0, 256))
	pkts := p.drain(p.a)
	require.Len(t, pkts, 5)
	p.deliver(p.b, append(pkts[:1:1], pkts[2:]...)...)
	p.deliver(p.a, p.drain(p.b)...)
	require.Equal(t, 1, sending.losses)
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 5)

	p.a.post(p.now, p.read(6, 0, 0, 2048))
	p.deliver(p.b, p.drain(p.a)...)
	pkts = p.drain(p.b)
	require.Len(t, pkts, 8)
	p.deliver(p.a, append(pkts[:1:1], pkts[2:]...)...)
	require.Equal(t, 1, reading.losses)
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 1)
}

// TestSelectiveAckOfStranger checks that a queue pair without selective retransmission ignores a
// selective acknowledgement, and that it needs both ends.
func TestSelectiveAckOfStranger(t *testing.T) {
	for _, attr := range []func(a *verbs.QPAttr){func(*verbs.QPAttr) {}, func(a *verbs.QPAttr) { a.AV.Selective = true },
		func(a *verbs.QPAttr) { a.AV.PeerBuffer = 1 << 20 }} {
		p := connect(t, withAttr(attr))
		p.a.post(p.now, p.write(1, 0, 0, 1024))
		pkts := p.drain(p.a)
		require.Equal(t, wire.DropWrongTransport, p.deliver(p.a, p.selectiveAck(-1, wire.SackBlock{PSN: 1, Arrived: 1})))
		require.Equal(t, wire.DropOutOfSequence, p.deliver(p.b, pkts[2]))
		require.Equal(t, []string{"ACKNOWLEDGE 0 60 msn=0"}, p.describePackets(p.b, p.drain(p.b)))
	}
}

// TestCopyOfARetransmission checks that a packet of which a retransmission was lost is sent twice, and
// that the second arrival does not count as a sign of reordering.
func TestCopyOfARetransmission(t *testing.T) {
	p := connect(t, withAttr(selectively))
	p.a.post(p.now, p.write(1, 0, 0, 1024))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[1:]...)
	lose := func() []string {
		p.now += reliability.Millisecond
		p.deliver(p.a, p.drain(p.b)...)
		p.a.Advance(p.now)
		return p.describePackets(p.a, p.drain(p.a))
	}
	require.Equal(t, []string{"WRITE_ONLY 0 len=256 @0+256 A"}, lose())
	p.a.post(p.now, p.write(2, 0, 0, 8)) // shows the loss
	p.deliver(p.b, p.drain(p.a)...)
	require.Empty(t, lose(), "the time for reordering has not passed")
	p.advanceToDeadline(p.a)
	again := p.drain(p.a)
	require.Equal(t, []string{"WRITE_ONLY 0 len=256 @0+256 A", "WRITE_ONLY 0 len=256 @0+256 A"}, p.describePackets(p.a, again))
	before := p.a.sel.order
	p.deliver(p.b, again[0])
	p.now += reliability.Millisecond
	p.deliver(p.a, p.drain(p.b)...)
	require.Equal(t, []string{"1 RDMA_WRITE len=1024", "2 RDMA_WRITE len=8"}, p.a.takeCompletions())
	p.deliver(p.b, again[1])
	acks := p.drain(p.b)
	require.Len(t, acks, 1)
	require.Equal(t, wire.OpSelectiveAck, acks[0].Info.Operation)
	p.deliver(p.a, acks...)
	require.EqualValues(t, 1, p.a.sel.duplicates)
	require.Equal(t, before, p.a.sel.order)

	p.deliver(p.b, again[1])
	p.deliver(p.a, p.drain(p.b)...)
	require.NotEqual(t, before, p.a.sel.order, "one more is a sign")
}

// TestReadsBeyondRdAtomic checks that with selective retransmission 16 times max_rd_atomic READs and
// atomics are outstanding, all of which can be answered again, and no more.
func TestReadsBeyondRdAtomic(t *testing.T) {
	p := connect(t, withAttr(func(a *verbs.QPAttr) { selectively(a); a.MaxRdAtomic, a.MaxDestRdAtomic = 1, 1 }))
	for i := range uint64(20) {
		p.a.post(p.now, p.fetchAdd(i, 0, 0, 1))
	}
	pkts := p.drain(p.a)
	require.Len(t, pkts, 16)
	p.deliver(p.b, pkts...)
	first := p.describePackets(p.b, p.drain(p.b))
	require.Len(t, first, 16)
	p.deliver(p.b, pkts...)
	again := p.drain(p.b)
	require.Equal(t, first, p.describePackets(p.b, again[:16]))
	p.deliver(p.a, again...)
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 20)
	require.EqualValues(t, 20, p.b.buf[0], "each is executed once")
}

// TestCopiesOfReadRequests checks that requests for lost data are sent twice, that only one of both is
// served, and that they are no sign of reordering.
func TestCopiesOfReadRequests(t *testing.T) {
	p := connect(t, withAttr(selectively))
	p.a.post(p.now, p.read(1, 0, 0, 2048))
	p.deliver(p.b, p.drain(p.a)...)
	data := p.drain(p.b)
	require.Len(t, data, 8)
	p.now += reliability.Millisecond
	p.deliver(p.a, data[1:]...)
	p.a.Advance(p.now)
	again := p.drain(p.a)
	require.Len(t, again, 2)
	require.False(t, isCopy(again[0]))
	require.True(t, isCopy(again[1]))
	before := p.b.sel.repeated
	p.deliver(p.b, again...)
	require.Len(t, p.takeNoAck(p.b), 1)
	require.Equal(t, before, p.b.sel.repeated)

	p = connect(t, withAttr(selectively))
	p.a.post(p.now, p.read(1, 0, 0, 2048))
	p.deliver(p.b, p.drain(p.a)...)
	p.drain(p.b)
	other := p.readRequest(3, 3*256, 256, p.b.key)
	other.BTH.SE, other.Raw[1] = true, other.Raw[1]|0x80
	p.deliver(p.b, other)
	require.Len(t, p.takeNoAck(p.b), 1, "the first request was lost")
}

// TestLossRate checks that the losses of a round trip are compared with the arrivals of the packets
// sent with them, also when few arrive later.
func TestLossRate(t *testing.T) {
	var l lossRate
	const rtt = reliability.Millisecond
	round := func(n, arrived, lost int) bool {
		l.arrived, l.lost = l.arrived+arrived, l.lost+lost
		return l.exceeded(reliability.Time(n)*rtt, rtt, 1000)
	}
	require.False(t, round(1, 100_000, 0))
	require.False(t, round(2, 500, 5000), "found after the burst")
	require.True(t, round(3, 10_000, 5000))
	require.False(t, round(4, 10, 10), "too few to tell")
}

// TestRoundTripOfWindow checks that the window allows for some delay of the systems beside the path.
func TestRoundTripOfWindow(t *testing.T) {
	const us, ms = reliability.Microsecond, reliability.Millisecond
	for _, c := range []struct{ shortest, smoothed, want int64 }{
		{10 * ms, 10 * ms, 10 * ms}, {10 * ms, 10*ms + 200*us, 10*ms + 200*us}, {10 * ms, 20 * ms, 11 * ms}, {100 * us, 5 * ms, 200 * us},
	} {
		p := connect(t, withAttr(selectively))
		p.a.sel.order.Sample(1, c.shortest)
		p.a.rtt.Sample(c.smoothed)
		require.Equal(t, c.want, p.a.roundTrip())
	}
}

// TestLostEndOfARead checks that the last packet of a response is requested again although it is lost
// together with all acknowledgements: the packets before it show that the request was executed.
func TestLostEndOfARead(t *testing.T) {
	p := connect(t, withAttr(selectively))
	p.a.post(p.now, p.read(1, 0, 0, 1024))
	p.deliver(p.b, p.drain(p.a)...)
	data := p.drain(p.b)
	require.Len(t, data, 4)
	p.deliver(p.a, data[:3]...)
	require.Equal(t, wire.PSN(p.psn[0]).Add(4), p.a.sel.executed)
	p.a.loseAll(p.now)
	require.Equal(t, "READ_REQUEST 3 @300+256 A", p.describePackets(p.a, p.drain(p.a))[0])
}
