package qp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestRecords checks that the flight recorder has packets in both directions, syndromes and states,
// in order, with the time.
func TestRecords(t *testing.T) {
	p := connect(t, withPSN(100))
	p.now = 5000
	p.a.post(p.now, p.write(1, 0, 0, 600), p.read(2, 0, 0, 600))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts...)
	p.deliver(p.a, p.drain(p.b)...)
	require.NoError(t, p.modify(p.a, verbs.StateErr))
	var got []string
	for _, r := range p.a.Records() {
		got = append(got, r.Text)
	}
	require.Equal(t, []string{
		"state RESET", "state INIT", "state RTR", "state RTS",
		"-> RC_WRITE_FIRST psn 100", "-> RC_WRITE_MIDDLE psn 101", "-> RC_WRITE_LAST psn 102", "-> RC_READ_REQUEST psn 103",
		"<- RC_READ_RESPONSE_FIRST psn 103 ACK", "<- RC_READ_RESPONSE_MIDDLE psn 104", "<- RC_READ_RESPONSE_LAST psn 105 ACK",
		"state ERR",
	}, got)
	require.EqualValues(t, 5000, p.a.Records()[4].At)

	got = nil
	for _, r := range p.b.Records()[8:] {
		got = append(got, r.Text)
	}
	require.Equal(t, []string{
		"-> RC_READ_RESPONSE_FIRST psn 103 ACK", "-> RC_READ_RESPONSE_MIDDLE psn 104", "-> RC_READ_RESPONSE_LAST psn 105 ACK",
	}, got)
}

// TestRecordsKeepTheNewest checks that the recorder keeps the newest records.
func TestRecordsKeepTheNewest(t *testing.T) {
	for _, n := range []int{1, maxRecords - 5, maxRecords - 4, maxRecords, 3 * maxRecords, 3*maxRecords + 7} {
		p := connect(t, withPSN(0))
		for i := range n {
			p.deliver(p.a, p.response(p.b, wire.RCAck, -1, wire.Syndrome(i%31), nil))
		}
		r := p.a.Records()
		require.Len(t, r, min(maxRecords, 4+n))
		require.True(t, strings.HasPrefix(r[len(r)-1].Text, fmt.Sprintf("<- RC_ACKNOWLEDGE psn %d ACK", wire.PSNMask)))
		for i := 1; i < len(r); i++ {
			require.LessOrEqual(t, r[i-1].At, r[i].At)
		}
	}
}

// TestPacketAndByteCounters checks that every built or accepted packet and every payload byte is
// counted.
func TestPacketAndByteCounters(t *testing.T) {
	p := connect(t)
	p.b.recv(9, 0, 300)
	p.a.post(p.now, p.write(1, 0, 4096, 600), p.send(2, 0, 300), p.read(3, 0, 0, 700), p.fetchAdd(4, 8192, 0, 1), p.writeImm(5, 0, 0, 0, 1))
	p.b.recv(10, 0, 0)
	packets := [2]uint64{}
	for range 3 {
		for i, n := range []*node{p.a, p.b} {
			pkts := p.drain(n)
			packets[i] += uint64(len(pkts))
			p.deliver(p.peer(n), pkts...)
		}
	}
	a, b := p.a.Counters(), p.b.Counters()
	require.Equal(t, [2]uint64{8, 5}, packets)
	require.Equal(t, packets, [2]uint64{a.SentPkts, b.SentPkts})
	require.Equal(t, packets, [2]uint64{b.RcvdPkts, a.RcvdPkts})
	require.Equal(t, [2]uint64{900, 700}, [2]uint64{a.SentBytes, b.SentBytes})
	require.Equal(t, [2]uint64{900, 700}, [2]uint64{b.RcvdBytes, a.RcvdBytes})
	require.EqualValues(t, 2, a.RDMASends)
	require.EqualValues(t, 2, b.RDMARecvs)
}

// TestFaultsHaveNames checks the names of memory faults.
func TestFaultsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for f := NoFault; f <= FaultMisalign; f++ {
		require.NotEmpty(t, f.String())
		seen[f.String()] = true
	}
	require.Len(t, seen, int(FaultMisalign)+1)
}

// TestNAKsAreCountedAsTheyLeave checks that the counters of NAKs count sent ones: a rejected packet
// that arrives twice before the NAK is sent causes one.
func TestNAKsAreCountedAsTheyLeave(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.send(1, 0, 8), p.send(2, 0, 8))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[1], pkts[0], pkts[0], pkts[1])
	require.Zero(t, p.b.Counters().SendRNRErr)
	require.Equal(t, []string{"ACKNOWLEDGE 0 2c msn=0"}, p.describePackets(p.b, p.drain(p.b)))
	require.EqualValues(t, 1, p.b.Counters().SendRNRErr)
	require.Zero(t, p.b.Counters().SendSeqErr, "the sequence NAK gave way to it")
}

// TestSendsAreCountedOnce checks that a retransmitted message is counted once.
func TestSendsAreCountedOnce(t *testing.T) {
	p := connect(t)
	p.b.recv(9, 0, 8)
	p.a.post(p.now, p.send(1, 0, 8), p.write(2, 0, 4096, 8))
	p.drain(p.a) // lost
	p.advanceToDeadline(p.a)
	p.exchange()
	require.EqualValues(t, 2, p.a.Counters().Retransmitted)
	require.EqualValues(t, 1, p.a.Counters().RDMASends, "the write takes no receive")
	require.EqualValues(t, 1, p.b.Counters().RDMARecvs)
}
