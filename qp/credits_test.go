package qp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// sends posts n SENDs of a, with numbers from first.
func (p *pair) sends(first uint64, n int) {
	for i := range uint64(n) {
		p.a.post(p.now, p.send(first+i, 0, 8))
	}
}

// recvs posts n receives of b, with numbers from first.
func (p *pair) recvs(first uint64, n int) {
	for i := range uint64(n) {
		p.b.recv(first+i, 1024*int(i), 600)
	}
}

// TestCreditsHoldMessages checks that before the first acknowledgement one request that consumes a
// receive may be sent, the probe. Its acknowledgement has the credits, and one more may be sent
// beyond them.
func TestCreditsHoldMessages(t *testing.T) {
	p := connect(t, withCredits)
	p.recvs(0, 4)
	p.sends(1, 8)
	probe := p.drain(p.a)
	require.Equal(t, []string{"SEND_ONLY 0 len=8 A"}, p.describePackets(p.a, probe))
	require.EqualValues(t, 1, p.a.Counters().CreditStalls)
	require.Empty(t, p.drain(p.a))
	require.EqualValues(t, 1, p.a.Counters().CreditStalls, "one stall for each message")
	p.deliver(p.b, probe...)
	ack := p.drain(p.b)
	require.Equal(t, []string{"ACKNOWLEDGE 0 03 msn=1"}, p.describePackets(p.b, ack), "three are left")
	p.deliver(p.a, ack...)
	pkts := p.drain(p.a)
	require.Len(t, pkts, 4, "three credits and a probe")
	p.deliver(p.b, pkts...)
	require.Equal(t, []string{"ACKNOWLEDGE 4 2c msn=4"}, p.describePackets(p.b, p.drain(p.b)), "the probe finds no receive")
}

// TestAdvertisedCredits checks that the credit code is the number of free receives, rounded down to
// the table, also in read and atomic responses.
func TestAdvertisedCredits(t *testing.T) {
	for free, code := range map[int]int{0: 0, 1: 1, 4: 4, 5: 4, 6: 5, 7: 5, 11: 6, 12: 7, 47: 10, 48: 11, 63: 11, 64: 12} {
		p := connect(t, withCredits)
		p.recvs(0, free)
		p.a.post(p.now, p.write(1, 0, 0, 8), p.read(2, 0, 0, 8), p.fetchAdd(3, 0, 0, 0))
		for _, pkt := range p.drain(p.a) {
			p.deliver(p.b, pkt)
			resp := p.drain(p.b)
			require.Len(t, resp, 1)
			require.EqualValues(t, code, resp[0].AETH().Syndrome, "%d free", free)
			p.deliver(p.a, resp...)
		}
	}
}

// TestRequestsWithoutReceiveNeedNoCredit checks that requests that consume no receive never wait,
// and raise the limit by one each: after them exactly one probe is still permitted.
func TestRequestsWithoutReceiveNeedNoCredit(t *testing.T) {
	p := connect(t, withCredits)
	p.a.post(p.now,
		p.write(1, 0, 0, 8), p.read(2, 0, 0, 600), p.fetchAdd(3, 4096, 0, 0), p.write(4, 0, 0, 600),
		p.writeImm(5, 0, 0, 8, 1), p.write(6, 0, 0, 8), p.send(7, 0, 8))
	require.Equal(t, []string{
		"WRITE_ONLY 0 len=8 @0+8 A", "READ_REQUEST 1 @0+600 A", "FETCH_ADD 4 A", "WRITE_FIRST 5 len=256 @0+600",
		"WRITE_MIDDLE 6 len=256", "WRITE_LAST 7 len=88 A", "WRITE_ONLY_IMM 8 len=8 @0+8 imm=1 A", "WRITE_ONLY 9 len=8 @0+8 A",
	}, p.describePackets(p.a, p.drain(p.a)))
}

// TestPartsOfAReadCountAsMessages checks that each part of a long read raises the limit, as each
// raises the peer's MSN.
func TestPartsOfAReadCountAsMessages(t *testing.T) {
	p := connect(t, withCredits)
	p.a.readPart = 16 << 10
	p.recvs(0, 10)
	p.a.post(p.now, p.read(1, 0, 0, 60_000), p.send(2, 0, 8), p.send(3, 0, 8))
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 3)
	require.EqualValues(t, 6, p.b.responder.recv.MSN(), "four parts and two messages")
	p.sends(4, 10)
	pkts := p.drain(p.a)
	require.Len(t, pkts, 9, "eight credits are left and a probe may go")
}

// TestUnlimitedCredits checks that code 31 disables credits for the connection.
func TestUnlimitedCredits(t *testing.T) {
	p := connect(t, withCredits)
	p.sends(1, 8)
	require.Len(t, p.drain(p.a), 1)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 0, 0x1f, nil))
	require.Len(t, p.drain(p.a), 7)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 7, 0x00, nil))
	p.sends(10, 8)
	require.Len(t, p.drain(p.a), 8, "a later count means nothing")
}

// TestSharedQueueAdvertisesUnlimited checks that the code is always 31 with a shared receive queue
// or without credits.
func TestSharedQueueAdvertisesUnlimited(t *testing.T) {
	for _, opts := range [][]option{{withCredits, withSRQ}, {}} {
		p := connect(t, opts...)
		for free := range 3 {
			p.a.post(p.now, p.write(1, 0, 0, 8))
			p.deliver(p.b, p.drain(p.a)...)
			ack := p.drain(p.b)
			require.EqualValues(t, 0x1f, ack[0].AETH().Syndrome, "%d free", free)
			p.deliver(p.a, ack...)
			p.b.recv(uint64(free), 0, 8)
			require.False(t, p.b.HasPendingAck(), "no news for the peer")
		}
	}
}

// TestNoCredits checks that a requester without credits ignores those of its peer.
func TestNoCredits(t *testing.T) {
	p := connect(t)
	p.sends(1, 8)
	require.Len(t, p.drain(p.a), 8)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 7, 0x00, nil))
	p.sends(10, 8)
	require.Len(t, p.drain(p.a), 8)
}

// TestGhostAckBringsCredits checks that receives posted after an acknowledgement without credits
// cause another acknowledgement, which repeats the last PSN with new credits, and that the
// requester handles it.
func TestGhostAckBringsCredits(t *testing.T) {
	p := connect(t, withCredits)
	p.recvs(0, 1)
	p.sends(1, 1)
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 1)
	require.False(t, p.b.HasPendingAck())
	p.recvs(10, 4)
	require.True(t, p.b.HasPendingAck())
	ghost := p.drain(p.b)
	require.Equal(t, []string{"ACKNOWLEDGE 0 04 msn=1"}, p.describePackets(p.b, ghost))
	p.deliver(p.a, ghost...)
	p.sends(2, 8)
	require.Len(t, p.drain(p.a), 5, "four credits and a probe")
	p.recvs(20, 1)
	require.False(t, p.b.HasPendingAck(), "the peer knew of some")
}

// TestGhostAckAfterAResponse checks the same after a read response without credits.
func TestGhostAckAfterAResponse(t *testing.T) {
	p := connect(t, withCredits)
	p.a.post(p.now, p.read(1, 0, 0, 8))
	p.exchange()
	p.recvs(0, 2)
	require.Equal(t, []string{"ACKNOWLEDGE 0 02 msn=1"}, p.describePackets(p.b, p.drain(p.b)))
}

// TestNoGhostAckBeforeTheFirstRequest checks that no acknowledgement precedes the first request.
func TestNoGhostAckBeforeTheFirstRequest(t *testing.T) {
	p := connect(t, withCredits)
	p.recvs(0, 4)
	require.False(t, p.b.HasPendingAck())
	require.Empty(t, p.drain(p.b))
}

// TestLostGhostAck checks that a lost credit update delays no message indefinitely: a probe is
// always permitted.
func TestLostGhostAck(t *testing.T) {
	p := connect(t, withCredits)
	p.recvs(0, 1)
	p.sends(1, 1)
	p.exchange()
	p.recvs(10, 8)
	p.drain(p.b) // lost
	p.sends(2, 8)
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 9)
	require.Len(t, p.b.takeCompletions(), 9)
}

// TestRetriesTakeNoCredit checks that retransmitted messages consume no credits.
func TestRetriesTakeNoCredit(t *testing.T) {
	p := connect(t, withCredits)
	p.recvs(0, 8)
	p.sends(1, 1)
	p.exchange()
	p.sends(2, 3)
	p.a.post(p.now, p.read(9, 4096, 0, 8), p.fetchAdd(10, 8192, 0, 1))
	p.drain(p.a)
	for range 5 {
		p.advanceToDeadline(p.a)
		p.drain(p.a)
	}
	p.advanceToDeadline(p.a)
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 6)
	p.a.window.Reset(p.mtu, 0) // the timeouts have shrunk it
	p.sends(20, 10)
	require.Len(t, p.drain(p.a), 5, "four credits and a probe")
}

// TestMessageWithoutCreditBlocksQueue checks that all requests after a message without a credit wait as
// well.
func TestMessageWithoutCreditBlocksQueue(t *testing.T) {
	p := connect(t, withCredits)
	p.sends(1, 2)
	p.a.post(p.now, p.write(3, 0, 0, 8))
	require.Len(t, p.drain(p.a), 1)
	p.recvs(0, 1)
	require.Equal(t, verbs.StateRTS, p.a.State())
}

// TestCreditsKeepUp checks that all messages arrive with any number of receives, if more are posted
// as they are consumed.
func TestCreditsKeepUp(t *testing.T) {
	for window := 1; window <= 9; window++ {
		t.Run(fmt.Sprint(window, " receives"), func(t *testing.T) {
			p := connect(t, withCredits)
			p.recvs(0, window)
			p.sends(0, 40)
			for got := 0; got < 40; {
				p.exchange()
				n := len(p.b.takeCompletions())
				got += n
				p.recvs(100, n)
				if n == 0 {
					p.advanceToDeadline(p.a)
				}
			}
			p.exchange()
			require.Len(t, p.a.takeCompletions(), 40)
		})
	}
}
