package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestAckOnRequest checks that an acknowledgement is sent only if a packet requests one.
func TestAckOnRequest(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 600))
	pkts := p.drain(p.a)
	require.Len(t, pkts, 3)
	p.deliver(p.b, pkts[:2]...)
	require.False(t, p.b.HasPendingAck())
	require.Empty(t, p.drain(p.b))
	p.deliver(p.b, pkts[2])
	require.True(t, p.b.HasPendingAck())
	require.Equal(t, []string{"ACKNOWLEDGE 2 1f msn=1"}, p.describePackets(p.b, p.drain(p.b)))
	require.False(t, p.b.HasPendingAck())
}

// TestAcksAreCoalesced checks that one acknowledgement covers all requests of a batch, and
// completes them in order.
func TestAcksAreCoalesced(t *testing.T) {
	p := connect(t)
	for i := range uint64(5) {
		p.a.post(p.now, p.write(i, 0, 0, 8))
	}
	p.deliver(p.b, p.drain(p.a)...)
	require.Empty(t, p.takeNoAck(p.b), "Drain leaves the acknowledgement to DrainAck")
	ack := p.drain(p.b)
	require.Equal(t, []string{"ACKNOWLEDGE 4 1f msn=5"}, p.describePackets(p.b, ack))
	require.EqualValues(t, 4, p.b.Counters().AckDeferred)
	p.deliver(p.a, ack...)
	require.Equal(t, []string{
		"0 RDMA_WRITE len=8", "1 RDMA_WRITE len=8", "2 RDMA_WRITE len=8", "3 RDMA_WRITE len=8", "4 RDMA_WRITE len=8",
	}, p.a.takeCompletions())
	require.Zero(t, p.a.Deadline(), "nothing is in flight")
}

// TestLongMessageRequestsAcks checks that a long message requests acknowledgements at least every
// 16 packets, so that the window moves.
func TestLongMessageRequestsAcks(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 60_000))
	unasked := 0
	for _, pkt := range p.drain(p.a) {
		if unasked++; pkt.BTH.AckReq {
			unasked = 0
		}
		require.Less(t, unasked, 16)
		p.deliver(p.b, pkt)
	}
	p.exchange()
	require.Equal(t, []string{"1 RDMA_WRITE len=60000"}, p.a.takeCompletions())
}

// TestWindowShrinksWithoutAckRequest checks that a message does not wait for its timer if the
// window shrinks while no packet in flight requests an acknowledgement.
func TestWindowShrinksWithoutAckRequest(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU4096))
	p.a.post(p.now, p.write(1, 0, 0, 60_000))
	out := &batch{room: 7} // less than the interval of requests
	require.True(t, p.a.Drain(p.now, out))
	for range 100 {
		p.a.window.OnLoss(p.now, 0)
	}
	p.deliver(p.b, p.parse(p.a, out)...)
	p.exchange()
	require.Equal(t, []string{"1 RDMA_WRITE len=60000"}, p.a.takeCompletions())
}

// TestOldAndRepeatedAcks checks that an acknowledgement of an earlier PSN and a repeated one
// acknowledge nothing.
func TestOldAndRepeatedAcks(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 8), p.write(2, 0, 0, 8))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[0])
	first := p.drain(p.b)
	p.deliver(p.b, pkts[1])
	second := p.drain(p.b)
	p.deliver(p.a, second...)
	require.Equal(t, []string{"1 RDMA_WRITE len=8", "2 RDMA_WRITE len=8"}, p.a.takeCompletions())
	p.deliver(p.a, second...)
	require.Equal(t, wire.DropGhostResponse, p.deliver(p.a, first...))
	require.Empty(t, p.a.takeCompletions())
}

// TestGhostResponses checks that responses without a request are dropped and counted by reason.
func TestGhostResponses(t *testing.T) {
	p := connect(t)
	ack := func(psn int, s wire.Syndrome) *wire.Packet {
		return p.response(p.b, wire.RCAck, psn, s, nil)
	}
	require.Equal(t, wire.DropGhostResponse, p.deliver(p.a, ack(0, 0x1f)), "nothing has been sent")
	require.Equal(t, wire.DropNone, p.deliver(p.a, ack(-1, 0x1f)), "may carry credits")
	p.a.post(p.now, p.write(1, 0, 0, 8))
	p.drain(p.a)
	require.Equal(t, wire.DropGhostResponse, p.deliver(p.a, ack(1, 0x1f)), "beyond what was sent")
	require.Equal(t, wire.DropGhostResponse, p.deliver(p.a, ack(1, wire.NakRemoteAccess)))
	require.Equal(t, wire.DropDuplicate, p.deliver(p.a, ack(-1, wire.NakRemoteAccess)))
	require.Equal(t, wire.DropBadSyndrome, p.deliver(p.a, ack(0, 0x40)), "reserved kind")
	require.Equal(t, wire.DropBadSyndrome, p.deliver(p.a, ack(0, 0x9f)), "reserved bit")
	require.Equal(t, wire.DropBadSyndrome, p.deliver(p.a, ack(0, 0x7f)), "reserved NAK")
	require.Empty(t, p.a.takeCompletions())
	require.Equal(t, verbs.StateRTS, p.a.State())
	p.deliver(p.a, ack(0, 0x1f))
	require.Equal(t, []string{"1 RDMA_WRITE len=8"}, p.a.takeCompletions())
}

// TestSequenceNAKOnceForEachGap checks that a gap causes one NAK with the expected PSN, that later
// packets are dropped until the expected one arrives, and that the next gap causes the next NAK.
func TestSequenceNAKOnceForEachGap(t *testing.T) {
	p := connect(t)
	for i := range uint64(6) {
		p.a.post(p.now, p.write(i, int(i), int(i), 1))
		p.a.buf[i] = byte(i + 1)
	}
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[0])
	require.Equal(t, wire.DropOutOfSequence, p.deliver(p.b, pkts[2]))
	require.True(t, p.b.acks.NAKPending(), "does not wait for DrainAck")
	require.Equal(t, []string{"ACKNOWLEDGE 1 60 msn=1"}, p.describePackets(p.b, p.takeNoAck(p.b)))
	require.Equal(t, wire.DropOutOfSequence, p.deliver(p.b, pkts[3:]...))
	require.Empty(t, p.drain(p.b))
	require.Equal(t, []byte{1, 0, 0, 0, 0, 0}, p.b.buf[:6], "nothing ahead was executed")

	require.Equal(t, wire.DropNone, p.deliver(p.b, pkts[1]))
	require.Equal(t, []string{"ACKNOWLEDGE 1 1f msn=2"}, p.describePackets(p.b, p.drain(p.b)))
	p.deliver(p.b, pkts[4], pkts[5])
	require.Equal(t, []string{"ACKNOWLEDGE 2 60 msn=2"}, p.describePackets(p.b, p.drain(p.b)))
	require.EqualValues(t, 2, p.b.Counters().SendSeqErr)
	require.EqualValues(t, 2, p.b.Counters().OutOfSeqRequest)
}

// TestSequenceNAKGoesBack checks that a sequence NAK acknowledges earlier packets, and that all
// packets from its PSN on are retransmitted unchanged.
func TestSequenceNAKGoesBack(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 8), p.write(2, 0, 1000, 700), p.send(3, 0, 8))
	p.b.recv(9, 0, 8)
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[0], pkts[1], pkts[3], pkts[4])
	nak := p.drain(p.b)
	require.Equal(t, []string{"ACKNOWLEDGE 2 60 msn=1"}, p.describePackets(p.b, nak))
	p.deliver(p.a, nak...)
	require.Equal(t, []string{"1 RDMA_WRITE len=8"}, p.a.takeCompletions(), "acknowledged by the NAK")
	again := p.drain(p.a)
	require.Equal(t, p.describePackets(p.a, pkts[2:]), p.describePackets(p.a, again))
	for i := range again {
		n := len(again[i].Raw) - wire.ICRCLen
		require.Equal(t, pkts[2+i].Raw[:n], again[i].Raw[:n])
	}
	c := p.a.Counters()
	require.EqualValues(t, 1, c.RcvdSeqErr)
	require.EqualValues(t, 1, c.CompleterRetryErr)
	require.EqualValues(t, 3, c.Retransmitted)
	p.deliver(p.b, again...)
	p.exchange()
	require.Equal(t, []string{"2 RDMA_WRITE len=700", "3 SEND len=8"}, p.a.takeCompletions())
}

// TestRepeatedSequenceNAKIsIgnored checks that a repeated NAK is ignored until there is progress or
// a timeout.
func TestRepeatedSequenceNAKIsIgnored(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 8), p.write(2, 0, 0, 8))
	pkts := p.drain(p.a)
	nak := p.response(p.b, wire.RCAck, 0, wire.NakPSNSequence, nil)
	p.deliver(p.a, nak)
	require.Len(t, p.drain(p.a), 2)
	for range 20 {
		p.deliver(p.a, nak)
	}
	require.Empty(t, p.drain(p.a))
	require.Equal(t, 1, p.a.retry.RetriesUsed())

	p.deliver(p.b, pkts[0])
	p.deliver(p.a, p.drain(p.b)...) // progress
	p.deliver(p.a, p.response(p.b, wire.RCAck, 1, wire.NakPSNSequence, nil))
	require.Len(t, p.drain(p.a), 1)
	require.Equal(t, 1, p.a.retry.RetriesUsed(), "the counter started anew")
}

// TestGapClosesBeforeTheNAKLeaves checks that a gap that closes before its NAK is sent causes a NAK
// for the packets dropped after it.
func TestGapClosesBeforeTheNAKLeaves(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 8), p.write(2, 0, 0, 8))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[1], pkts[0])
	require.Equal(t, []string{"ACKNOWLEDGE 1 60 msn=1"}, p.describePackets(p.b, p.drain(p.b)))

	p = connect(t)
	p.a.post(p.now, p.read(1, 0, 0, 8), p.write(2, 0, 0, 8))
	pkts = p.drain(p.a)
	p.deliver(p.b, pkts[1], pkts[0])
	require.Equal(t, []string{"READ_RESPONSE_ONLY 0 len=8 1f msn=1", "ACKNOWLEDGE 1 60 msn=1"}, p.describePackets(p.b, p.drain(p.b)))
}

// TestAckDoesNotOvertakeResponses checks that no acknowledgement of a later request is sent before
// the response of an earlier read or atomic, with batches of any size.
func TestAckDoesNotOvertakeResponses(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.read(1, 0, 0, 1000), p.fetchAdd(2, 2000, 0, 1), p.write(3, 0, 4096, 8))
	p.deliver(p.b, p.drain(p.a)...)
	var got []string
	for more := true; more; {
		out := &batch{room: 1}
		more = p.b.Drain(p.now, out)
		got = append(got, p.describePackets(p.b, p.parse(p.b, out))...)
	}
	got = append(got, p.describePackets(p.b, p.drain(p.b))...)
	require.Equal(t, []string{
		"READ_RESPONSE_FIRST 0 len=256 1f msn=1", "READ_RESPONSE_MIDDLE 1 len=256", "READ_RESPONSE_MIDDLE 2 len=256",
		"READ_RESPONSE_LAST 3 len=232 1f msn=1", "ATOMIC_ACKNOWLEDGE 4 1f msn=2", "ACKNOWLEDGE 5 1f msn=3",
	}, got)
}

// TestResponseStandsForAcknowledgement checks that a read or atomic response acknowledges all
// earlier requests.
func TestResponseStandsForAcknowledgement(t *testing.T) {
	for _, last := range []string{"read", "atomic"} {
		p := connect(t)
		wr := p.read(3, 0, 0, 8)
		if last == "atomic" {
			wr = p.fetchAdd(3, 0, 0, 1)
		}
		p.a.post(p.now, p.write(1, 0, 4096, 8), p.write(2, 0, 4096, 600), wr)
		p.deliver(p.b, p.drain(p.a)...)
		resp := p.drain(p.b)
		require.Len(t, resp, 1, "no ACK beside the response")
		p.deliver(p.a, resp...)
		require.Len(t, p.a.takeCompletions(), 3)
	}
}

// TestFullBatches checks that full batches lose no packets: with batches of one packet the sequence
// is the same, including NAKs and acknowledgements.
func TestFullBatches(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 700), p.read(2, 4096, 0, 300), p.fetchAdd(3, 8192, 0, 1), p.send(4, 0, 10))
	require.True(t, p.a.Drain(p.now, &batch{}), "no room at all")
	var got []string
	for more := true; more; {
		out := &batch{room: 1}
		more = p.a.Drain(p.now, out)
		checkInvariants(t, p.a.Core)
		got = append(got, p.describePackets(p.a, p.parse(p.a, out))...)
	}
	require.Equal(t, []string{
		"WRITE_FIRST 0 len=256 @0+700", "WRITE_MIDDLE 1 len=256", "WRITE_LAST 2 len=188 A",
		"READ_REQUEST 3 @0+300 A", "FETCH_ADD 5 A", "SEND_ONLY 6 len=10 A",
	}, got)
	p.deliver(p.b, p.response(p.a, wire.RCWriteMiddle, 1, 0, nil))
	require.True(t, p.b.Drain(p.now, &batch{}), "the NAK waits for room")
	require.True(t, p.b.DrainAck(p.now, &batch{}))
	require.Equal(t, []string{"ACKNOWLEDGE 0 60 msn=0"}, p.describePackets(p.b, p.drain(p.b)))
}
