package qp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
