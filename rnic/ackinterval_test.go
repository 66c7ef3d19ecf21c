package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestAckIntervalAdapts checks that a peer that waits for acknowledgements gets them after half of a
// burst, that one that keeps sending gets few, and that one that has sent a few packets, or needs
// none, changes nothing.
func TestAckIntervalAdapts(t *testing.T) {
	s := &shard{receiveState: receiveState{maxAckEvery: ackPackets, ackEvery: ackPackets}}
	runs := func(n, packets int) {
		for range n {
			s.burstPackets = packets
			s.adaptAckInterval()
			require.Zero(t, s.burstPackets)
		}
	}
	runs(20, 40)
	require.Equal(t, ackPackets, s.ackEvery, "no end requests any")
	s.ackQueueLen.Store(1)
	runs(20, streamPackets-1)
	require.Equal(t, ackPackets, s.ackEvery, "this is no stream")
	runs(1, 40)
	require.Equal(t, (ackPackets+20)/2, s.ackEvery, "once is not always")
	runs(20, 40)
	require.InDelta(t, 20, s.ackEvery, 1)
	runs(20, streamPackets)
	require.InDelta(t, streamPackets, s.ackEvery, 1)
	runs(20, 10_000)
	require.Equal(t, ackPackets, s.ackEvery)

	s.maxAckEvery, s.ackEvery = 2, 2 // with a small receive buffer
	runs(20, 40)
	require.Equal(t, 2, s.ackEvery)
}

// TestAckIntervalWithinMessage checks that within a message acknowledgements are rare, unless the end of
// another one is awaited, of the same peer or another.
func TestAckIntervalWithinMessage(t *testing.T) {
	a, b := pair(t, Options{NoService: true})
	q, other := b.qp.(*queuePair), b.newQP(t, verbs.RC).(*queuePair)
	s := q.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ackEvery = 9
	require.Equal(t, 9, s.ackInterval(), "nothing is owed")
	handleWrite(t, a, b, 0, true)
	require.Equal(t, []*queuePair{q}, s.ackQueue)
	require.Equal(t, s.maxAckEvery, s.ackInterval())
	s.ackQueue = []*queuePair{q, other}
	require.Equal(t, 9, s.ackInterval())
	s.ackQueue = []*queuePair{other}
	require.Equal(t, 9, s.ackInterval())
	s.ackQueue = []*queuePair{q}
	handleWrite(t, a, b, 1, false)
	require.Equal(t, 9, s.ackInterval(), "its message is over")
	handleWrite(t, a, b, 2, true)
	require.Equal(t, 9, s.ackInterval(), "as is the one before this")
}

// handleWrite handles packet n of a's at b, a write that is a complete message or the start of one.
func handleWrite(t *testing.T, a, b *end, n wire.PSN, more bool) {
	q := b.qp.(*queuePair)
	now, s := q.dev.now(), q.shard
	info := wire.RCWriteOnly.Info()
	raw := make([]byte, info.HeaderLen+8+wire.ICRCLen)
	h := wire.BTH{Opcode: wire.RCWriteOnly, PKey: wire.DefaultPKey, DestQPN: q.num, PSN: 100 + n, AckReq: true, More: more}
	h.Put(raw)
	wire.RETH{VA: b.mr.Addr(), RKey: b.mr.RKey(), Length: 8}.Put(raw[wire.BTHLen:])
	p := &s.pkt
	p.Src, p.Dst = a.dev.Addr(), b.dev.Addr()
	require.Equal(t, wire.DropNone, p.Parse(raw))
	s.handlePacket(now, q, p)
	s.drainActive(now)
}

// TestCork checks that a batch waits while about twice as much is on the wire, and that a larger
// one does not.
func TestCork(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{NoService: true}) // who acknowledges nothing
	connect(t, a.dev, a.qp, b.dev, b.qp)
	q := a.qp.(*queuePair)
	s := q.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	post := func(n int) (waits bool) {
		now := a.dev.now()
		_, err := q.core.PostSend(now, []verbs.SendWR{{Opcode: verbs.WRRDMAWrite, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(), SGList: []verbs.SGE{a.mr.SGE(0, n)}}})
		require.NoError(t, err)
		s.drainQP(q, now)
		defer s.flush()
		return s.corkStream(q)
	}
	require.False(t, post(1000), "nothing is on the wire")
	require.False(t, post(20<<10), "little is")
	require.False(t, post(20<<10), "not twice as much is")
	require.True(t, post(10<<10), "40 KiB are, and 24 with the batch's own would do")
	require.False(t, post(47<<10), "half as much is")
	require.False(t, s.corkStream(q), "there is no batch")
}
