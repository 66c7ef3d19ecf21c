package qp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestTimeoutTable checks that the local ACK timeout is 4.096 us * 2^timeout, at least
// MinAckTimeout, that 0 is none, and that Query returns the code as set.
func TestTimeoutTable(t *testing.T) {
	for code := uint8(0); code < 32; code++ {
		p := connect(t, withAttr(func(a *verbs.QPAttr) { a.Timeout = code }))
		p.a.post(p.now, p.write(1, 0, 0, 8))
		require.Zero(t, p.a.Deadline())
		p.drain(p.a)
		if code == 0 {
			require.Zero(t, p.a.Deadline(), "no timeout at all")
			continue
		}
		require.EqualValues(t, max(int64(4096)<<code, MinAckTimeout), p.a.Deadline()-p.now)
		require.Equal(t, code, p.a.Query().Timeout)
	}
}

// TestShortestTimeout checks that with the shortest code a terminated peer is detected in bounded
// time, and that one that responds within the device's minimum timeout does not fail.
func TestShortestTimeout(t *testing.T) {
	for code := uint8(1); code <= 12; code++ {
		p := connect(t, withAttr(func(a *verbs.QPAttr) { a.Timeout = code }))
		start := p.now
		p.a.post(p.now, p.write(1, 0, 0, 8))
		p.drain(p.a)
		for p.a.Deadline() != 0 {
			p.advanceToDeadline(p.a)
			p.drain(p.a) // all packets are lost
		}
		require.Equal(t, []string{"1 RETRY_EXC_ERR"}, p.a.takeCompletions(), code)
		require.EqualValues(t, (1+2+6*4)*MinAckTimeout, p.now-start, "timeout code %d", code)

		p = connect(t, withAttr(func(a *verbs.QPAttr) { a.Timeout, a.RetryCnt = code, 0 }))
		p.a.post(p.now, p.write(1, 0, 0, 8))
		request := p.drain(p.a)
		p.now += MinAckTimeout - 1
		p.deliver(p.b, request...)
		p.exchange()
		require.Equal(t, []string{"1 RDMA_WRITE len=8"}, p.a.takeCompletions(), code)
	}
}

// TestTimeoutsSpendRetries checks that retry_cnt timeouts retransmit from the oldest packet, that
// the next one fails with RETRY_EXC_ERR, and that later requests are flushed in order.
func TestTimeoutsSpendRetries(t *testing.T) {
	for retries := uint8(0); retries <= 7; retries++ {
		t.Run(fmt.Sprint("retry_cnt ", retries), func(t *testing.T) {
			p := connect(t, withAttr(func(a *verbs.QPAttr) { a.RetryCnt = retries }))
			p.b.recv(10, 0, 8) // packets of b, kept
			p.a.recv(11, 0, 8)
			p.a.recv(12, 0, 8)
			p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)), p.send(2, 0, 8), p.read(3, 0, 0, 8), p.write(4, 0, 0, 8))
			first := p.describePackets(p.a, p.drain(p.a))
			require.Len(t, first, 4)
			for i := range int(retries) {
				p.wait(p.a, 4096<<(14+min(i, 2)))
				require.Equal(t, verbs.StateRTS, p.a.State())
				require.Equal(t, first[:1], p.describePackets(p.a, p.drain(p.a)), "round %d; the window has collapsed", i+1)
			}
			p.wait(p.a, 4096<<(14+min(int64(retries), 2)))
			require.Equal(t, verbs.StateErr, p.a.State())
			require.EqualValues(t, retries, p.a.wcs[0].Failure.Retries)
			require.Equal(t, []string{
				"1 RETRY_EXC_ERR", "2 WR_FLUSH_ERR", "3 WR_FLUSH_ERR", "4 WR_FLUSH_ERR", "11 WR_FLUSH_ERR", "12 WR_FLUSH_ERR",
			}, p.a.takeCompletions())
			require.Zero(t, p.a.Deadline())
			require.Empty(t, p.drain(p.a))
			c := p.a.Counters()
			require.EqualValues(t, retries, c.Timeouts)
			require.EqualValues(t, 1, c.RetryExceededErr)
			require.EqualValues(t, retries, c.Retransmitted)
		})
	}
}

// TestProgressResetsRetries checks that progress resets both retry counters.
func TestProgressResetsRetries(t *testing.T) {
	p := connect(t, withAttr(func(a *verbs.QPAttr) { a.RetryCnt = 2 }))
	for i := range uint64(5) {
		p.a.post(p.now, p.write(i, 0, 0, 8))
	}
	for i := range uint64(5) {
		p.drain(p.a)
		p.wait(p.a, 4096<<14)
		p.drain(p.a)
		p.wait(p.a, 4096<<15)           // each timeout doubles it
		p.deliver(p.b, p.drain(p.a)[0]) // one packet at a time, at the last retry
		p.deliver(p.a, p.drain(p.b)...)
		require.Equal(t, []string{fmt.Sprintf("%d RDMA_WRITE len=8", i)}, p.a.takeCompletions())
	}
	require.EqualValues(t, 10, p.a.Counters().Timeouts)
}

// TestSequenceNAKsSpendRetries checks that sequence NAKs spend the same retries as timeouts.
func TestSequenceNAKsSpendRetries(t *testing.T) {
	p := connect(t, withAttr(func(a *verbs.QPAttr) { a.RetryCnt = 1 }))
	p.a.post(p.now, p.write(1, 0, 0, 8))
	p.drain(p.a)
	nak := p.response(p.b, wire.RCAck, 0, wire.NakPSNSequence, nil)
	p.deliver(p.a, nak)
	p.drain(p.a)
	p.wait(p.a, 4096<<14) // from the go-back
	require.Equal(t, []string{"1 RETRY_EXC_ERR"}, p.a.takeCompletions())
}

// TestSequenceNAKWithoutRetries checks that a sequence NAK without retries left fails immediately.
func TestSequenceNAKWithoutRetries(t *testing.T) {
	p := connect(t, withAttr(func(a *verbs.QPAttr) { a.RetryCnt = 0 }))
	p.a.post(p.now, p.write(1, 0, 0, 8), p.write(2, 0, 0, 8))
	p.drain(p.a)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 1, wire.NakPSNSequence, nil))
	require.Equal(t, []string{"1 RDMA_WRITE len=8", "2 RETRY_EXC_ERR"}, p.a.takeCompletions()[:2])
}

// TestTimerRunsFromProgress checks that the timer starts at the last progress, not at the first
// packet.
func TestTimerRunsFromProgress(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 8), p.write(2, 0, 0, 8))
	pkts := p.drain(p.a)
	p.now += 40 * reliability.Millisecond
	p.deliver(p.b, pkts[0])
	p.deliver(p.a, p.drain(p.b)...)
	require.EqualValues(t, 4096<<14, p.a.Deadline()-p.now)
	require.Len(t, p.a.takeCompletions(), 1)
	p.wait(p.a, 4096<<14)
	require.Equal(t, []string{"WRITE_ONLY 1 len=8 @0+8 A"}, p.describePackets(p.a, p.drain(p.a)))
}

// TestRoundTripIsTimed checks that each acknowledgement request times the round trip, unless its
// packet is retransmitted.
func TestRoundTripIsTimed(t *testing.T) {
	for _, kind := range []string{"write", "read", "atomic"} {
		for _, again := range []bool{false, true} {
			p := connect(t)
			p.a.post(p.now, map[string]verbs.SendWR{"write": p.write(1, 0, 0, 8), "read": p.read(1, 0, 0, 8), "atomic": p.fetchAdd(1, 0, 0, 1)}[kind])
			pkts := p.drain(p.a)
			if again {
				p.advanceToDeadline(p.a)
				pkts = p.drain(p.a)
			}
			p.now += 1000
			p.deliver(p.b, pkts...)
			p.deliver(p.a, p.drain(p.b)...)
			if again {
				require.Zero(t, p.a.rtt.Smoothed(), kind)
			} else {
				require.EqualValues(t, 1002, p.a.rtt.Smoothed(), kind)
			}
		}
	}
}

// TestTimedPacketRequestsAck checks that the timed packet is the one that requests the acknowledgement.
func TestTimedPacketRequestsAck(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 600))
	p.drain(p.a)
	psn, ok := p.a.rtt.TimedPSN()
	require.True(t, ok)
	require.Equal(t, wire.PSN(nearWrap).Add(2), psn)
}

// TestAdvanceBeforeTheDeadline checks that Advance before the deadline has no effect.
func TestAdvanceBeforeTheDeadline(t *testing.T) {
	p := connect(t)
	p.a.Advance(1 << 60)
	p.a.post(p.now, p.write(1, 0, 0, 8))
	p.drain(p.a)
	p.a.Advance(p.a.Deadline() - 1)
	require.Empty(t, p.drain(p.a))
	require.Zero(t, p.a.Counters().Timeouts)
}

// TestProbes checks that with a peer whose buffer is known a requester probes before the timeout:
// with the oldest packet alone and AckReq, at growing intervals, without spending retries.
func TestProbes(t *testing.T) {
	p := connect(t, withPeerBuffer)
	p.a.post(p.now, p.write(1, 0, 0, 600), p.write(2, 0, 0, 8), p.write(3, 0, 0, 8))
	p.drain(p.a)
	for _, ms := range []int64{10, 20} { // no sample of the round-trip time yet
		p.wait(p.a, ms*reliability.Millisecond)
		require.Equal(t, []string{"WRITE_ONLY 0 len=256 @0+256 A"}, p.describePackets(p.a, p.drain(p.a)))
	}
	require.Equal(t, 0, p.a.retry.RetriesUsed())
	require.EqualValues(t, 2, p.a.Counters().Probes)
	p.a.post(p.now, p.write(4, 0, 0, 8))
	require.Equal(t, []string{"WRITE_ONLY 5 len=8 @0+8 A"}, p.describePackets(p.a, p.drain(p.a)), "sending continues at the same packet")
	p.wait(p.a, 4096<<14-30*reliability.Millisecond)
	require.Equal(t, []string{"WRITE_ONLY 0 len=256 @0+256 A"}, p.describePackets(p.a, p.drain(p.a)))
	require.EqualValues(t, 1, p.a.Counters().Timeouts)
	require.Equal(t, 1, p.a.retry.RetriesUsed())
}

// TestProbeFindsLostTail checks that, if the tail of a message is lost, the response to the probe
// acknowledges the probe only, so that the following packets are retransmitted at once.
func TestProbeFindsLostTail(t *testing.T) {
	p := connect(t, withPeerBuffer)
	p.a.post(p.now, p.write(1, 0, 0, 600), p.write(2, 0, 1000, 8))
	p.drain(p.a) // all four are lost
	p.wait(p.a, 10*reliability.Millisecond)
	require.Equal(t, []string{
		"WRITE_ONLY 0 len=256 @0+256 A", "ACKNOWLEDGE 0 1f msn=1",
		"WRITE_ONLY 1 len=256 @100+256", "WRITE_ONLY 2 len=88 @200+88 A", "WRITE_ONLY 3 len=8 @3e8+8 A", "ACKNOWLEDGE 3 1f msn=4",
	}, p.exchange())
	require.EqualValues(t, 1, p.a.Counters().Probes)
	require.Zero(t, p.a.Counters().Timeouts)
	require.Equal(t, 0, p.a.retry.RetriesUsed())
	require.Len(t, p.a.takeCompletions(), 2)
}

// TestProbeFindsNothingLost checks that, if only the acknowledgement is lost, the response to the
// probe acknowledges all packets.
func TestProbeFindsNothingLost(t *testing.T) {
	p := connect(t, withPeerBuffer)
	p.a.post(p.now, p.write(1, 0, 0, 600), p.write(2, 0, 1000, 8))
	p.deliver(p.b, p.drain(p.a)...)
	p.drain(p.b)
	p.advanceToDeadline(p.a)
	require.Equal(t, []string{"WRITE_ONLY 0 len=256 @0+256 A", "ACKNOWLEDGE 3 1f msn=4"}, p.exchange())
	require.Len(t, p.a.takeCompletions(), 2)
}

func withPeerBuffer(o *options) {
	o.attr = func(a *verbs.QPAttr) { a.AV.PeerBuffer = 1 << 20 }
}

// TestProbeDuringGoBack checks that a probe during go-back-N neither skips packets that are not yet
// retransmitted nor miscounts reads.
func TestProbeDuringGoBack(t *testing.T) {
	p := connect(t, withPeerBuffer)
	p.a.post(p.now, p.write(1, 0, 0, 600), p.read(2, 4096, 0, 300), p.write(3, 0, 0, 8), p.fetchAdd(4, 8192, 0, 1))
	p.drain(p.a)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 0, wire.NakPSNSequence, nil))
	out := &batch{room: 4}
	require.True(t, p.a.Drain(p.now, out))
	require.Equal(t, []string{
		"WRITE_ONLY 0 len=256 @0+256", "WRITE_ONLY 1 len=256 @100+256", "WRITE_ONLY 2 len=88 @200+88 A", "READ_REQUEST 3 @0+300 A",
	}, p.describePackets(p.a, p.parse(p.a, out)))
	p.advanceToDeadline(p.a)
	out = &batch{room: 1}
	p.a.Drain(p.now, out)
	require.Equal(t, []string{"WRITE_ONLY 0 len=256 @0+256 A"}, p.describePackets(p.a, p.parse(p.a, out)))
	checkInvariants(t, p.a.Core)
	require.EqualValues(t, 1, p.a.rdOut, "the read is outstanding, the atomic waits to be sent again")
	require.Equal(t, []string{"WRITE_ONLY 5 len=8 @0+8 A", "FETCH_ADD 6 A"}, p.describePackets(p.a, p.drain(p.a)))
}

// TestResumeInTheMiddle checks that a long message resumes in the middle with MIDDLE or LAST,
// without RETH.
func TestResumeInTheMiddle(t *testing.T) {
	for lost := range 5 {
		p := connect(t)
		p.b.recv(9, 0, 2000)
		p.a.post(p.now, p.write(1, 0, 0, 1200), p.send(2, 0, 1200))
		pkts := p.drain(p.a)
		var kept []*wire.Packet
		for i, pkt := range pkts {
			if i != lost && i != lost+5 {
				kept = append(kept, pkt)
			}
		}
		p.deliver(p.b, kept...)
		p.exchange()
		for len(p.a.wcs) < 2 && p.a.Deadline() != 0 {
			p.advanceToDeadline(p.a)
			p.exchange()
		}
		require.Equal(t, []string{"1 RDMA_WRITE len=1200", "2 SEND len=1200"}, p.a.takeCompletions())
		require.Equal(t, []string{"9 RECV len=1200"}, p.b.takeCompletions())
	}
}
