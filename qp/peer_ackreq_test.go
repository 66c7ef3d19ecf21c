package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// delayAck returns a write of n bytes without a waiter.
func (c *couple) delayAck(id uint64, n int) verbs.SendWR {
	wr := c.request(id, verbs.WRRDMAWrite, 0, 0, n)
	wr.Flags |= verbs.SendDelayAck
	return wr
}

// requestsAck reports for each packet whether it requests an acknowledgement.
func requestsAck(pkts []*wire.Packet) (asks []bool) {
	for _, k := range pkts {
		asks = append(asks, k.BTH.AckReq)
	}
	return asks
}

// TestDatagramRDMADelayAck checks that the last packet of a write with a waiter requests an
// acknowledgement, and that one without a waiter is acknowledged after AckDelay, together with
// others.
func TestDatagramRDMADelayAck(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	c.a.post(c.now, c.request(1, verbs.WRRDMAWrite, 0, 0, 600))
	pkts := c.drain(c.a)
	require.Equal(t, []bool{false, false, true}, requestsAck(pkts))
	c.deliver(c.b, pkts...)
	c.exchange()
	require.Equal(t, []string{"1 RDMA_WRITE len=600"}, c.a.takeCompletions())

	c.a.post(c.now, c.delayAck(2, 600))
	pkts = c.drain(c.a)
	require.Equal(t, []bool{false, false, false}, requestsAck(pkts))
	c.deliver(c.b, pkts[0])
	first := c.now
	c.now += AckDelay / 2
	c.deliver(c.b, pkts[1:]...)
	require.Empty(t, c.drain(c.b))
	for !c.b.HasPendingAck() { // further ones may follow
		c.advanceToDeadline(c.b)
	}
	require.InDelta(t, AckDelay, float64(c.now-first), 100, "one, AckDelay after the first")
	pkts = c.drain(c.b)
	require.Len(t, pkts, 1)
	require.Zero(t, c.b.Deadline())
	c.deliver(c.a, pkts...)
	require.Equal(t, []string{"2 RDMA_WRITE len=600"}, c.a.takeCompletions())
	require.Zero(t, c.ofA.deadline)
}

// TestDatagramRDMADelayAckGoAlong checks that an acknowledgement request covers the earlier
// writes, so that none is pending later. So does the end of the queue pair.
func TestDatagramRDMADelayAckGoAlong(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	c.a.post(c.now, c.delayAck(1, 8), c.request(2, verbs.WRRDMAWrite, 0, 0, 8))
	c.exchange()
	require.ElementsMatch(t, []string{"1 RDMA_WRITE len=8", "2 RDMA_WRITE len=8"}, c.a.takeCompletions())
	c.advanceToDeadline(c.b)
	require.Empty(t, c.drain(c.b))
	require.Zero(t, c.b.Deadline())

	c.a.post(c.now, c.delayAck(3, 8))
	c.deliver(c.b, c.drain(c.a)...)
	require.Empty(t, c.drain(c.b))
	c.b.ExpireDelayedAck()
	require.True(t, c.b.HasPendingAck())
	c.deliver(c.a, c.drain(c.b)...)
	require.Equal(t, []string{"3 RDMA_WRITE len=8"}, c.a.takeCompletions())
}

// TestDatagramRDMADelayAckMany checks that enough packets request acknowledgements to move the
// window, and all of them when the queue is half full.
func TestDatagramRDMADelayAckMany(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	for i := range 15 {
		c.a.post(c.now, c.delayAck(uint64(i), 8))
	}
	require.NotContains(t, requestsAck(c.drain(c.a)), true)
	c.a.post(c.now, c.delayAck(15, 8))
	require.Equal(t, []bool{true}, requestsAck(c.drain(c.a)))
	for i := range 3 {
		c.a.post(c.now, c.delayAck(uint64(16+i), 8))
		require.Equal(t, []bool{false}, requestsAck(c.drain(c.a)))
	}
	c.a.post(c.now, c.delayAck(19, 8))
	require.Equal(t, []bool{true}, requestsAck(c.drain(c.a)), "20 of 40 are in flight")
}

// TestDatagramRDMADelayAckFence checks that acknowledgements are requested for the requests that a
// fenced one waits for.
func TestDatagramRDMADelayAckFence(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	fenced := c.request(2, verbs.WRRDMARead, 100, 0, 8)
	fenced.Flags |= verbs.SendFence
	copy(c.a.buf, "written!")
	c.a.post(c.now, c.delayAck(1, 8), fenced)
	begin := c.now
	c.exchange()
	require.Equal(t, []string{"1 RDMA_WRITE len=8", "2 RDMA_READ len=8"}, c.a.takeCompletions())
	require.Equal(t, "written!", string(c.a.buf[100:108]))
	require.Less(t, c.now-begin, reliability.Time(AckDelay))
}

// TestDatagramRDMADelayAckLost checks that a lost write is retransmitted after reliability.DelayedAckProbe, and that
// writes then request acknowledgements for a while.
func TestDatagramRDMADelayAckLost(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	begin := c.now
	c.a.post(c.now, c.delayAck(1, 8))
	c.drain(c.a) // and lost
	c.advanceToDeadline(c.a)
	require.EqualValues(t, reliability.DelayedAckProbe, c.now-begin)
	again := c.drain(c.a)
	require.Equal(t, []bool{true}, requestsAck(again))
	c.deliver(c.b, again...)
	c.exchange()
	require.Len(t, c.a.takeCompletions(), 1)
	for i := range cautiousMessages - 1 { // one was the first
		c.a.post(c.now, c.delayAck(2, 8))
		pkts := c.drain(c.a)
		require.Equal(t, []bool{true}, requestsAck(pkts), i)
		c.deliver(c.b, pkts...)
		c.exchange()
	}
	c.a.post(c.now, c.delayAck(3, 8))
	require.Equal(t, []bool{false}, requestsAck(c.drain(c.a)))
}

// TestDatagramRDMARemainingAcks checks that after the requested acknowledgement the remaining ones
// are not accelerated.
func TestDatagramRDMARemainingAcks(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	c.a.post(c.now, c.request(1, verbs.WRRDMARead, 0, 0, 8))
	pkts := c.drain(c.a)
	c.a.post(c.now, c.delayAck(2, 8))
	c.deliver(c.b, pkts...)
	c.deliver(c.b, c.drain(c.a)...)
	c.deliver(c.a, c.drain(c.b)...)
	require.Equal(t, []string{"1 RDMA_READ len=8"}, c.a.takeCompletions())
	require.InDelta(t, reliability.DelayedAckProbe, float64(c.ofA.deadline-c.now), 1000)
	c.advanceToDeadline(c.b)
	c.deliver(c.a, c.drain(c.b)...)
	require.Equal(t, []string{"2 RDMA_WRITE len=8"}, c.a.takeCompletions())
}
