package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
)

const kib = 1 << 10

// TestVirtualWindows checks section 5.1: a buffer of 64 KB with windows of 8 KB. The numbers are
// those of the paper.
func TestVirtualWindows(t *testing.T) {
	r := flow.NewNICReceiver(make([]byte, 64*kib+8*kib), 8*kib, 1000)
	counted := func() int { return r.Free() - 8*kib } // without the slack
	posted := r.Receives()
	require.Equal(t, 8, posted)
	require.Zero(t, counted()-posted*8*kib, "all of it is windows")

	require.NoError(t, r.Deliver(0, kib)) // instead of 8 KB
	posted--
	require.Equal(t, 7, posted)
	require.Equal(t, 7, r.Receives(), "none to be posted")
	require.Equal(t, 7*kib, counted()-posted*8*kib, "free behind the last window")

	require.NoError(t, r.Deliver(kib, kib))
	posted--
	require.Equal(t, 14*kib, counted()-posted*8*kib)
	require.Equal(t, posted+1, r.Receives(), "one more may be posted")
	posted++
	require.Equal(t, 7, posted)
	require.Equal(t, 6*kib, counted()-posted*8*kib)

	require.Equal(t, 2*kib, r.Read(make([]byte, 64*kib))) // recv() creates more free space
	require.Equal(t, posted+1, r.Receives())
	posted++
	require.Zero(t, counted()-posted*8*kib)
}

// TestBufferUtilization checks section 3.2: messages of a byte use a byte each of buffers of 8 KB.
func TestBufferUtilization(t *testing.T) {
	z := sizes{send: 64 * kib, ring: 64 * kib, window: 8 * kib, queue: 1000, most: 1000}
	unread := func(d flow.Control, z sizes) int { // messages of a byte at the peer before any are read
		z.design = d
		p := newPipe(t, z)
		for range 200 {
			p.send(1)
			p.deliver()
			p.complete(1)
		}
		return p.r.Buffered()
	}
	require.Equal(t, 8, unread(flow.Credit, sizes{send: 8, ring: 8, size: 8 * kib, peer: 8 * kib, queue: 1000}))
	require.Equal(t, 200, unread(flow.RDMA, z))
	require.Equal(t, 200, unread(flow.NIC, z))
}

// TestCoalescing checks section 4.2: of 64 messages of 2 KB to a buffer of 64 KB without a reader,
// 32 are sent and 32 wait. With free space they are sent as one message, but not before a push.
func TestCoalescing(t *testing.T) {
	p := newPipe(t, sizes{design: flow.RDMA, send: 64 * kib, ring: 64 * kib, queue: 100, most: 100})
	for range 32 {
		require.Equal(t, 2*kib, p.send(2*kib))
		require.True(t, p.deliver())
	}
	p.complete(32)
	for range 32 {
		require.Equal(t, 2*kib, p.send(2*kib))
	}
	require.Len(t, p.lengths, 32)
	require.Zero(t, p.s.Free())
	require.Equal(t, 64*kib, p.read(1<<20))
	p.reportIfDue()
	require.Len(t, p.lengths, 32, "the report has not been seen")
	require.True(t, p.handleReport())
	require.Equal(t, []int{64 * kib}, p.lengths[32:])
	p.drain()
}

// TestCutIsNotDeferred checks that data before a cut is not deferred.
func TestCutIsNotDeferred(t *testing.T) {
	p := newPipe(t, sizes{design: flow.NIC, send: 64 * kib, ring: 64 * kib, window: 8 * kib, queue: 100, most: 100})
	require.Equal(t, 8*kib, p.send(8*kib))
	require.Equal(t, 10, p.send(10))
	require.Equal(t, []int{8 * kib}, p.lengths)
	p.s.EndMessage()
	p.post()
	require.Equal(t, []int{8 * kib, 10}, p.lengths)
}

// TestAsynchronousProgress checks section 5.2: data that does not fit in the adapter's queue is
// coalesced, and sent when a message completes. Short messages are coalesced earlier, while the
// adapter is busy.
func TestAsynchronousProgress(t *testing.T) {
	p := newPipe(t, sizes{design: flow.NIC, send: 64 * kib, ring: 64 * kib, window: 8 * kib, queue: 100, most: 100})
	for range 32 {
		require.Equal(t, 2*kib, p.send(2*kib))
	}
	require.Equal(t, []int{2 * kib, 2 * kib, 2 * kib, 2 * kib, 8 * kib, 8 * kib, 8 * kib, 8 * kib, 8 * kib, 8 * kib}, p.lengths)
	require.Equal(t, 8*kib, p.s.Unposted())
	require.Zero(t, p.send(1))
	adapter := len(p.lengths)
	for range adapter {
		require.True(t, p.deliver())
	}
	p.complete(adapter)
	require.Equal(t, []int{8 * kib}, p.lengths[adapter:], "as one message")
	p.drain()
}

// TestDelayAckWhileHalfIsFree checks that messages have DelayAck as long as twice as many may be in
// flight, bounded by slots or by the queue, and that a message with a waiting sender is not.
func TestDelayAckWhileHalfIsFree(t *testing.T) {
	const stride = 64
	for _, z := range []struct{ slots, queue int }{{8, 8}, {8, 96}, {64, 8}} {
		var c flow.Credits
		c.Start(uint16(z.slots) + flow.ReservedCredits)
		s := flow.NewCreditSender(make([]byte, z.slots*stride), stride, 0, stride, z.queue, &c)
		next := func() (flow.Message, bool) {
			s.Write([]byte{1})
			return s.Next()
		}
		var lazy []bool
		var last flow.Message
		for m, ok := next(); ok; m, ok = next() {
			lazy, last = append(lazy, m.DelayAck), m
		}
		require.Equal(t, []bool{true, true, true, false, false, false, false, false}, lazy, z)
		require.True(t, last.Signal)
		s.CompleteUpTo(last.End())
		m, ok := next()
		require.True(t, ok && m.DelayAck, z)
	}
}
