package qp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// rnrMillis is the table of RNR timers, written a second time.
var rnrMillis = [32]float64{
	655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92,
	2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
}

// TestRNRTimers checks that a SEND without a receive causes an RNR NAK with the timer code and its
// own PSN, that the requester waits at least that long and retransmits, and that no message is
// lost.
func TestRNRTimers(t *testing.T) {
	for code := range uint8(32) {
		p := connect(t, withAttr(func(a *verbs.QPAttr) { a.MinRNRTimer = code }))
		p.a.post(p.now, p.write(1, 0, 4096, 8), p.send(2, 0, 300), p.write(3, 0, 4096, 8))
		p.deliver(p.b, p.drain(p.a)...)
		nak := p.drain(p.b)
		require.Equal(t, []string{fmt.Sprintf("ACKNOWLEDGE 1 %02x msn=1", 0x20|code)}, p.describePackets(p.b, nak))
		p.deliver(p.a, nak...)
		require.Equal(t, []string{"1 RDMA_WRITE len=8"}, p.a.takeCompletions(), "everything before is acknowledged")
		require.Empty(t, p.drain(p.a), "the queue waits")
		p.b.recv(9, 0, 300)
		p.wait(p.a, int64(rnrMillis[code]*1000)*reliability.Microsecond)
		require.Equal(t, []string{"SEND_FIRST 1 len=256 A", "SEND_LAST 2 len=44 A", "WRITE_ONLY 3 len=8 @1000+8 A"},
			p.exchange()[:3])
		require.Equal(t, []string{"2 SEND len=300", "3 RDMA_WRITE len=8"}, p.a.takeCompletions())
		require.Equal(t, []string{"9 RECV len=300"}, p.b.takeCompletions())
		require.Zero(t, p.a.Counters().Timeouts)
		require.EqualValues(t, 1, p.a.Counters().RcvdRNRErr)
		require.EqualValues(t, 1, p.b.Counters().SendRNRErr)
	}
}

// TestNoResponseAfterRNR checks that packets after a rejected one cause no response, also before
// the RNR NAK is sent.
func TestNoResponseAfterRNR(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.send(1, 0, 8), p.send(2, 0, 8), p.send(3, 0, 8))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[0])
	require.Equal(t, []string{"ACKNOWLEDGE 0 2c msn=0"}, p.describePackets(p.b, p.drain(p.b)))
	p.deliver(p.b, pkts[1:]...)
	require.Empty(t, p.drain(p.b))
	p.deliver(p.b, pkts...)
	require.Equal(t, []string{"ACKNOWLEDGE 0 2c msn=0"}, p.describePackets(p.b, p.drain(p.b)), "refused anew, and not overtaken")
}

// TestRNRReplacesSequenceNAK checks that the RNR NAK of the expected packet replaces a pending
// sequence NAK, and not vice versa.
func TestRNRReplacesSequenceNAK(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.send(1, 0, 8), p.send(2, 0, 8))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[1], pkts[0], pkts[1])
	require.Equal(t, []string{"ACKNOWLEDGE 0 2c msn=0"}, p.describePackets(p.b, p.drain(p.b)))
}

// TestNAKsDuringRNRWait checks that a sequence NAK after an RNR NAK, as Linux's rxe sends it, or a
// second RNR NAK neither ends the wait nor spends a retry.
func TestNAKsDuringRNRWait(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.send(1, 0, 8), p.send(2, 0, 8))
	p.drain(p.a)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 0, wire.RNRSyndrome(14), nil))
	end := p.a.Deadline()
	p.deliver(p.a, p.response(p.b, wire.RCAck, 0, wire.NakPSNSequence, nil), p.response(p.b, wire.RCAck, 0, wire.RNRSyndrome(20), nil))
	require.Empty(t, p.drain(p.a))
	require.Equal(t, end, p.a.Deadline())
	require.Zero(t, p.a.retry.RetriesUsed())
	p.advanceToDeadline(p.a)
	require.Len(t, p.drain(p.a), 2)
}

// TestProgressEndsRNRWait checks that the wait ends if a copy of the rejected packet was accepted,
// and that the packets dropped after it are retransmitted at once.
func TestProgressEndsRNRWait(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.send(1, 0, 8), p.send(2, 0, 8), p.send(3, 0, 8))
	p.drain(p.a)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 0, wire.RNRSyndrome(14), nil), p.response(p.b, wire.RCAck, 0, 0x1f, nil))
	require.Equal(t, []string{"1 SEND len=8"}, p.a.takeCompletions())
	require.Equal(t, []string{"SEND_ONLY 1 len=8 A", "SEND_ONLY 2 len=8 A"}, p.describePackets(p.a, p.drain(p.a)))
}

// TestRNRRetryCounts checks that rnr_retry RNR NAKs are tolerated, that the next one is
// RNR_RETRY_EXC_ERR, that 7 is no limit, and that sequence retries are unaffected.
func TestRNRRetryCounts(t *testing.T) {
	for limit := uint8(0); limit <= 7; limit++ {
		t.Run(fmt.Sprint("rnr_retry ", limit), func(t *testing.T) {
			p := connect(t, withAttr(func(a *verbs.QPAttr) { a.RNRRetry, a.RetryCnt = limit, 0 }))
			p.a.post(p.now, p.send(1, 0, 8), p.write(2, 0, 4096, 8))
			suffered := int(limit)
			if limit == 7 {
				suffered = 100
			}
			for range suffered {
				p.exchange()
				require.Equal(t, verbs.StateRTS, p.a.State())
				p.advanceToDeadline(p.a)
			}
			if limit == 7 {
				p.b.recv(9, 0, 8)
				p.exchange()
				require.Equal(t, []string{"1 SEND len=8", "2 RDMA_WRITE len=8"}, p.a.takeCompletions())
				return
			}
			p.exchange()
			require.EqualValues(t, limit, p.a.wcs[0].Failure.Retries)
			require.Zero(t, p.a.wcs[0].Failure.Key, "keys have nothing to do with it")
			require.Equal(t, []string{"1 RNR_RETRY_EXC_ERR", "2 WR_FLUSH_ERR"}, p.a.takeCompletions())
			require.Equal(t, verbs.StateErr, p.a.State())
			require.EqualValues(t, 1, p.a.Counters().RetryRNRExceededErr)
		})
	}
}

// TestProgressResetsRNRRetries checks that progress resets the RNR counter.
func TestProgressResetsRNRRetries(t *testing.T) {
	p := connect(t, withAttr(func(a *verbs.QPAttr) { a.RNRRetry = 1 }))
	for i := range uint64(5) {
		p.a.post(p.now, p.send(i, 0, 8))
		p.exchange()
		p.b.recv(i, 0, 8)
		p.advanceToDeadline(p.a)
		p.exchange()
		require.Equal(t, []string{fmt.Sprintf("%d SEND len=8", i)}, p.a.takeCompletions())
	}
}

// TestRNRForWriteWithImmediate checks that a write with immediate without a receive is rejected
// with the PSN of its last packet and advances nothing, and is then executed once.
func TestRNRForWriteWithImmediate(t *testing.T) {
	for _, n := range []int{0, 8, 600} {
		p := connect(t)
		for i := range n {
			p.a.buf[i] = byte(i + 1)
		}
		p.a.post(p.now, p.writeImm(1, 0, 0, n, 0xbeef))
		pkts := p.drain(p.a)
		last := len(pkts) - 1
		p.deliver(p.b, pkts...)
		nak := p.drain(p.b)
		require.Equal(t, []string{fmt.Sprintf("ACKNOWLEDGE %d 2c msn=0", last)}, p.describePackets(p.b, nak))
		require.Equal(t, pkts[last].BTH.PSN, p.b.Core.responder.recv.Expected())
		require.Empty(t, p.b.takeCompletions())
		p.deliver(p.a, nak...)
		p.advanceToDeadline(p.a)
		again := p.drain(p.a)
		require.Equal(t, p.describePackets(p.a, pkts[last:]), p.describePackets(p.a, again), "only what was refused comes again")
		p.b.recv(9, 32768, 0)
		p.deliver(p.b, again...)
		p.exchange()
		require.Equal(t, []string{fmt.Sprintf("9 RECV_RDMA_WITH_IMM len=%d imm=beef", n)}, p.b.takeCompletions())
		require.Equal(t, []string{fmt.Sprintf("1 RDMA_WRITE len=%d", n)}, p.a.takeCompletions())
		require.Equal(t, p.a.buf[:n], p.b.buf[:n])
	}
}

// TestOtherRequestAtRefusedPSN checks that after the RNR NAK of a write with immediate another
// request is accepted at the same PSN.
func TestOtherRequestAtRefusedPSN(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.writeImm(1, 0, 0, 8, 1))
	p.deliver(p.b, p.drain(p.a)...)
	p.drain(p.b)
	other := connect(t)
	other.a.post(1, other.write(2, 0, 64, 8))
	pkt := other.drain(other.a)[0]
	require.Equal(t, wire.DropNone, p.deliver(p.b, pkt))
	require.Equal(t, []string{"ACKNOWLEDGE 0 1f msn=1"}, p.describePackets(p.b, p.drain(p.b)))
}

// TestNoRNRInTheMiddle checks that a SEND is never rejected after its first packet, which has
// consumed the receive.
func TestNoRNRInTheMiddle(t *testing.T) {
	p := connect(t)
	p.b.recv(9, 0, 600)
	p.a.post(p.now, p.send(1, 0, 600), p.send(2, 0, 8))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts...)
	require.Equal(t, []string{"ACKNOWLEDGE 3 2c msn=1"}, p.describePackets(p.b, p.drain(p.b)))
	require.Equal(t, []string{"9 RECV len=600"}, p.b.takeCompletions())
}

// TestLostRNRNAK checks that the timeout recovers from a lost RNR NAK.
func TestLostRNRNAK(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.send(1, 0, 8))
	p.deliver(p.b, p.drain(p.a)...)
	p.drain(p.b)
	p.b.recv(9, 0, 8)
	p.wait(p.a, 4096<<14-1)
	p.exchange()
	require.Equal(t, []string{"1 SEND len=8"}, p.a.takeCompletions())
}

// TestRNRBehindLostResponse checks that a missing read response before the rejected packet is
// requested first, and that the packet is rejected again.
func TestRNRBehindLostResponse(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.read(1, 0, 0, 8), p.send(2, 0, 8))
	p.deliver(p.b, p.drain(p.a)...)
	resp := p.drain(p.b)
	require.Len(t, resp, 2)
	p.deliver(p.a, resp[1])
	require.Equal(t, []string{"READ_REQUEST 0 @0+8 A", "SEND_ONLY 1 len=8 A"}, p.describePackets(p.a, p.drain(p.a)))
}

// TestRNROfAdvertisingPeer checks that a softrnic peer, which advertises its receives, gets retries
// with backoff until then, and an immediate retry afterwards.
func TestRNROfAdvertisingPeer(t *testing.T) {
	p := connect(t, withCredits, withPeerBuffer)
	heardOfReceives(p)
	p.a.post(p.now, p.send(1, 0, 8))
	p.exchange()
	for _, wait := range []int64{640, 1280, 2560, 5120, 10_000, 10_000} {
		p.wait(p.a, wait*reliability.Microsecond)
		p.exchange()
	}
	require.EqualValues(t, 7, p.b.Counters().SendRNRErr)
	p.b.recv(9, 0, 8)
	require.Equal(t, []string{"ACKNOWLEDGE 0 01 msn=1", "SEND_ONLY 1 len=8 A", "ACKNOWLEDGE 1 00 msn=2"}, p.exchange())
	require.Equal(t, []string{"1 SEND len=8"}, p.a.takeCompletions())
	require.Equal(t, []string{"9 RECV len=8"}, p.b.takeCompletions())

	p.a.post(p.now, p.send(2, 0, 8))
	p.exchange()
	p.wait(p.a, 640*reliability.Microsecond) // there was progress
}

// heardOfReceives makes b advertise its number of receives to a: none remain.
func heardOfReceives(p *pair) {
	p.b.recv(0, 0, 8)
	p.a.post(p.now, p.send(0, 0, 8))
	p.exchange()
	require.Len(p.t, p.a.takeCompletions(), 1)
	require.Len(p.t, p.b.takeCompletions(), 1)
}

// TestAdvertisementWithRequestsBehind checks that the advertisement of a receive is handled also if
// later requests without a receive move the limit of credits.
func TestAdvertisementWithRequestsBehind(t *testing.T) {
	p := connect(t, withCredits, withPeerBuffer)
	heardOfReceives(p)
	p.a.post(p.now, p.send(1, 0, 8), p.write(2, 0, 0, 8), p.read(3, 0, 0, 8))
	p.exchange()
	for _, wait := range []int64{640, 1280} {
		p.wait(p.a, wait*reliability.Microsecond)
		p.exchange()
	}
	require.Empty(t, p.a.takeCompletions())
	p.b.recv(9, 0, 8)
	p.exchange()
	require.Equal(t, []string{"1 SEND len=8", "2 RDMA_WRITE len=8", "3 RDMA_READ len=8"}, p.a.takeCompletions())
}

// TestPacketAfterAdvertisementRequestsAck checks that a packet sent after the advertisement requests an acknowledgement, also
// for a request with SendDelayAck, because only that shows that the peer was ready.
func TestPacketAfterAdvertisementRequestsAck(t *testing.T) {
	p := connect(t, withCredits, withPeerBuffer)
	heardOfReceives(p)
	wr := p.send(1, 0, 8)
	wr.Flags |= verbs.SendDelayAck
	p.a.post(p.now, wr)
	p.exchange()
	for i := range uint64(16) { // more than half of them remain
		p.b.recv(10+i, 0, 8)
	}
	p.deliver(p.a, p.drain(p.b)...)
	pkts := p.drain(p.a)
	require.Len(t, pkts, 1)
	require.True(t, pkts[0].BTH.AckReq)
}

// TestRNROfNonAdvertisingPeer checks that a peer that has never advertised receives gets retries at
// its own interval: it may have a shared queue.
func TestRNROfNonAdvertisingPeer(t *testing.T) {
	for _, opts := range [][]option{{withCredits, withPeerBuffer, withSRQ}, {withPeerBuffer}} {
		p := connect(t, opts...)
		p.a.post(p.now, p.send(1, 0, 8))
		p.exchange()
		for range 5 {
			p.wait(p.a, 640*reliability.Microsecond)
			p.exchange()
		}
	}
}

// TestRNRDelayCodes checks that ConnectOptions has the same table as package wire.
func TestRNRDelayCodes(t *testing.T) {
	for code := range uint8(32) {
		a, err := verbs.ConnectOptions{RNRDelay: time.Duration(wire.RNRNanos(code))}.QPAttr(verbs.RC)
		require.NoError(t, err)
		require.Equal(t, code, a.MinRNRTimer)
	}
}
