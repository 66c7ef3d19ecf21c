package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// TestDelayedAck checks that with a softrnic peer a message without a waiter requests no
// acknowledgement, and that it is acknowledged after AckDelay.
func TestDelayedAck(t *testing.T) {
	p := connect(t, withPeerBuffer)
	p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)), unsignaled(p.write(2, 0, 0, 8)))
	pkts := p.drain(p.a)
	require.Equal(t, []string{"WRITE_ONLY 0 len=8 @0+8", "WRITE_ONLY 1 len=8 @0+8"}, p.describePackets(p.a, pkts))
	p.deliver(p.b, pkts[:1]...)
	require.Empty(t, p.drain(p.b))
	p.now += AckDelay / 2
	p.deliver(p.b, pkts[1:]...)
	p.wait(p.b, AckDelay/2-1) // delivery takes a nanosecond
	require.Equal(t, []string{"ACKNOWLEDGE 1 1f msn=2"}, p.describePackets(p.b, p.drain(p.b)), "one, AckDelay after the first")
	require.Zero(t, p.b.Deadline())
}

// TestDelayAck checks that a request with SendDelayAck completes with that acknowledgement, or with an
// earlier one.
func TestDelayAck(t *testing.T) {
	delayAck := func(wr verbs.SendWR) verbs.SendWR {
		wr.Flags |= verbs.SendDelayAck
		return wr
	}
	p := connect(t, withPeerBuffer)
	p.a.post(p.now, delayAck(p.write(1, 0, 0, 8)))
	pkts := p.drain(p.a)
	require.False(t, pkts[0].BTH.AckReq)
	p.deliver(p.b, pkts...)
	p.exchange()
	require.Empty(t, p.a.takeCompletions())
	p.wait(p.b, AckDelay)
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 1)

	p.a.post(p.now, delayAck(p.write(2, 0, 0, 8)), p.write(3, 0, 0, 8))
	p.exchange()
	require.Len(t, p.a.takeCompletions(), 2, "the second is urgent")

	p = connect(t)
	p.a.post(p.now, delayAck(p.write(1, 0, 0, 8)))
	require.True(t, p.drain(p.a)[0].BTH.AckReq, "a stranger")
}

// TestDelayedAckLost checks that a lost message is probed for after reliability.DelayedAckProbe, and that messages
// then request acknowledgements for a while, so that the next loss is detected soon.
func TestDelayedAckLost(t *testing.T) {
	p := connect(t, withPeerBuffer)
	p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)))
	p.drain(p.a) // and lost
	p.wait(p.a, reliability.DelayedAckProbe)
	again := p.drain(p.a)
	require.Equal(t, []string{"WRITE_ONLY 0 len=8 @0+8 A"}, p.describePackets(p.a, again))
	p.deliver(p.b, again...)
	p.exchange()
	for i := range cautiousMessages {
		p.a.post(p.now, unsignaled(p.write(2, 0, 0, 8)))
		pkts := p.drain(p.a)
		require.True(t, pkts[0].BTH.AckReq, i)
		p.deliver(p.b, pkts...)
		p.exchange()
	}
	p.a.post(p.now, unsignaled(p.write(3, 0, 0, 8)))
	require.False(t, p.drain(p.a)[0].BTH.AckReq)
}

// TestDelayedAckWithShortTimeout checks that all messages request acknowledgements if the timeout is
// short.
func TestDelayedAckWithShortTimeout(t *testing.T) {
	p := connect(t, func(o *options) {
		o.attr = func(a *verbs.QPAttr) { a.AV.PeerBuffer, a.Timeout = 1<<20, 10 }
	})
	p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)))
	require.True(t, p.drain(p.a)[0].BTH.AckReq)
}

// TestDelayedAckIsCovered checks that an acknowledgement request covers the earlier messages, and so
// does a response.
func TestDelayedAckIsCovered(t *testing.T) {
	for what, last := range map[string]func(p *pair) verbs.SendWR{
		"a signaled write": func(p *pair) verbs.SendWR { return p.write(2, 0, 0, 8) },
		"a read":           func(p *pair) verbs.SendWR { return p.read(2, 4096, 0, 8) },
	} {
		p := connect(t, withPeerBuffer)
		p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)), last(p))
		p.exchange()
		require.Len(t, p.a.takeCompletions(), 1, what)
		require.Zero(t, p.b.Deadline(), what)
		sends, _ := p.a.Queued()
		require.Zero(t, sends, what)
	}
}

// TestAwaited checks that a message requests an acknowledgement if something waits for it: a
// completion, space in the send queue, a credit, a later local operation, the window. With other
// adapters than softrnic every message does.
func TestAwaited(t *testing.T) {
	asks := func(p *pair, i int) bool {
		pkts := p.drain(p.a)
		return pkts[i].BTH.AckReq
	}
	p := connect(t)
	p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)))
	require.True(t, asks(p, 0), "a stranger")

	p = connect(t, withPeerBuffer)
	p.a.post(p.now, p.write(1, 0, 0, 8))
	require.True(t, asks(p, 0), "signaled")

	p = connect(t, withPeerBuffer)
	p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)), verbs.SendWR{WRID: 2, Opcode: verbs.WRLocalInv, InvKey: 1})
	require.True(t, asks(p, 0), "a local operation behind it")

	p = connect(t, withPeerBuffer, withCredits)
	p.b.recv(7, 32768, 64)
	p.a.post(p.now, unsignaled(p.send(1, 0, 8)))
	require.True(t, asks(p, 0), "the last credit")

	p = connect(t, withPeerBuffer)
	for p.a.Cap().MaxSendWR > 2*func() int { n, _ := p.a.Queued(); return n }()+2 {
		p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)))
	}
	silent := 0
	for _, pkt := range p.drain(p.a) {
		if !pkt.BTH.AckReq {
			silent++
			require.Less(t, silent, maxWithoutAckReq)
			continue
		}
		silent = 0
	}
	p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)))
	require.True(t, asks(p, 0), "half of the send queue is full")
}
