package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/sdp/internal/flow"
)

const kib = 1 << 10

// Section 5.1: a buffer of 64 KB with windows of 8 KB. The numbers are the
// paper's.
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

// Section 3.2: of buffers of 8 KB, messages of a byte use a byte each.
func TestBufferUtilization(t *testing.T) {
	z := sizes{send: 64 * kib, ring: 64 * kib, window: 8 * kib, queue: 1000, most: 1000}
	unread := func(d flow.Control, z sizes) int { // messages of a byte that the peer has before anybody reads
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

// Section 4.2: 64 messages of 2 KB to a buffer of 64 KB that nobody reads. 32
// leave at once, 32 stay. With the room that comes they leave as one message,
// but not before somebody asks.
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
	require.True(t, p.hear())
	require.Equal(t, []int{64 * kib}, p.lengths[32:])
	p.drain()
}

// What ends at a cut does not wait for company.
func TestCutIsNotHeld(t *testing.T) {
	p := newPipe(t, sizes{design: flow.NIC, send: 64 * kib, ring: 64 * kib, window: 8 * kib, queue: 100, most: 100})
	require.Equal(t, 8*kib, p.send(8*kib))
	require.Equal(t, 10, p.send(10))
	require.Equal(t, []int{8 * kib}, p.lengths)
	p.s.EndMessage()
	p.post()
	require.Equal(t, []int{8 * kib, 10}, p.lengths)
}

// Section 5.2: what the adapter's part does not take is coalesced, and leaves
// when a message completes. Short messages are coalesced before, once the adapter
// has something to do.
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

// Messages are in no hurry as long as twice as many may be under way, be it slots or
// places in the queue that bound them. What a sender waits for never is.
func TestLazyWhileHalfIsFree(t *testing.T) {
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
			lazy, last = append(lazy, m.Unhurried), m
		}
		require.Equal(t, []bool{true, true, true, false, false, false, false, false}, lazy, z)
		require.True(t, last.Signal)
		s.CompleteUpTo(last.End())
		m, ok := next()
		require.True(t, ok && m.Unhurried, z)
	}
}
