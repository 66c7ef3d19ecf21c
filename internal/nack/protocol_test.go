package nack

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOneMessage checks that a message costs one packet and one delayed acknowledgement.
func TestOneMessage(t *testing.T) {
	p := newPair(t, Options{})
	p.send(0, "hello")
	p.run(1000 * ms)
	require.Equal(t, []string{"hello"}, p.got[1])
	require.Equal(t, []string{
		"  0.000 ms  a > b  DATA  0 (tx 1)",
		"  1.000 ms  b > a  ACK   1 echo 1",
	}, p.log)
	p.requireIdle()
}

// TestPiggyback checks that a reply message carries the acknowledgement.
func TestPiggyback(t *testing.T) {
	p := newPair(t, Options{})
	for range 10 {
		p.send(0, "ping")
		p.run(20 * us)
		p.send(1, "pong")
		p.run(20 * us)
	}
	p.run(1000 * ms)
	require.Len(t, p.got[0], 10)
	require.Len(t, p.got[1], 10)
	require.Equal(t, []uint64{0, 1}, []uint64{p.end[1].Stats.Acks, p.end[0].Stats.Acks}, "of the last pong")
	p.requireIdle()
}

// TestGap checks that a gap is reported immediately, and that only the missing packet is
// retransmitted.
func TestGap(t *testing.T) {
	p := newPair(t, Options{})
	p.lose = loseOnce(func(_ int, h *Header) bool { return h.Kind == Data && h.Seq == 2 })
	for _, m := range strings.Fields("a b c d e") {
		p.send(0, m)
	}
	p.run(1000 * ms)
	require.Equal(t, strings.Fields("a b c d e"), p.got[1])
	require.EqualValues(t, 1, p.end[0].Stats.Retransmitted)
	require.EqualValues(t, 1, p.end[1].Stats.Nacks)
	require.Zero(t, p.end[0].Stats.Probes, p.log)
	p.requireIdle()
}

// TestGapThatCloses checks that a gap that closes before the next transmission is not reported.
func TestGapThatCloses(t *testing.T) {
	p := newPair(t, Options{})
	var out [2]Packet
	p.send(0, "a")
	p.send(0, "b")
	require.Equal(t, 2, p.end[0].Drain(p.now, out[:]))
	p.handle(1, out[1].Bytes)
	p.handle(1, out[0].Bytes)
	require.Equal(t, []string{"a", "b"}, p.got[1])
	p.end[0].ReleaseSlot(out[0].Slot)
	p.end[0].ReleaseSlot(out[1].Slot)
	require.Zero(t, p.end[1].Drain(p.now, out[:]))
	p.run(100 * ms)
	require.EqualValues(t, 1, p.end[1].Stats.Acks)
	require.Zero(t, p.end[1].Stats.Nacks)
	p.requireIdle()
}

// TestSlotHeldByDevice checks that a lost packet that the adapter still holds is retransmitted
// after the adapter has released its slot.
func TestSlotHeldByDevice(t *testing.T) {
	p := newPair(t, Options{})
	var out [4]Packet
	p.send(0, "a")
	p.send(0, "b")
	require.Equal(t, 2, p.end[0].Drain(p.now, out[:]))
	p.handle(1, out[1].Bytes)
	var reply [1]Packet
	require.Equal(t, 1, p.end[1].Drain(p.now, reply[:]))
	p.handle(0, reply[0].Bytes)
	require.Zero(t, p.end[0].Drain(p.now, out[2:]))
	p.end[0].ReleaseSlot(out[1].Slot)
	require.Zero(t, p.end[0].Drain(p.now, out[2:]))
	p.end[0].ReleaseSlot(out[0].Slot)
	p.run(100 * ms)
	require.Equal(t, []string{"a", "b"}, p.got[1])
	require.EqualValues(t, 1, p.end[0].Stats.Retransmitted)
	p.requireIdle()
}

// TestAckRequests checks that a packet requests an acknowledgement if it is one of many, the
// last in the window, or if slots are short.
func TestAckRequests(t *testing.T) {
	answers := func(o Options, n int) (list []uint32) {
		p := newPair(t, o)
		for range n {
			p.send(0, "x")
		}
		p.lose = func(_ int, h *Header) bool {
			if h.Kind == Data && h.Flags&AckRequested != 0 {
				list = append(list, h.Seq)
			}
			return false
		}
		p.exchange()
		p.exchange()
		p.exchange()
		p.exchange()
		return list
	}
	require.Equal(t, []uint32{15, 31, 47, 63}, answers(Options{}, Window))
	require.Empty(t, answers(Options{Slots: 8}, 6))
	require.Equal(t, []uint32{0, 1, 2, 3, 4, 5, 6}, answers(Options{Slots: 8}, 7))
}

// TestProbeBackoff checks that unanswered probes back off and shrink the window, and that a response
// ends the backoff although it acknowledges nothing new.
func TestProbeBackoff(t *testing.T) {
	p := newPair(t, Options{})
	s := &p.end[0].peers.Get(1).out
	var asked []Time
	p.lose = func(_ int, h *Header) bool {
		if h.Kind == Probe {
			asked = append(asked, p.now)
		}
		return true
	}
	p.send(0, "x")
	p.run(1000 * ms)
	require.Greater(t, len(asked), 5)
	for i := 2; i < len(asked); i++ {
		require.GreaterOrEqual(t, asked[i]-asked[i-1], asked[i-1]-asked[i-2])
		require.LessOrEqual(t, asked[i]-asked[i-1], Time(maxProbeInterval))
	}
	require.Equal(t, 2*minMTU, s.window.Size())
	p.lose = func(_ int, h *Header) bool { return h.Kind == Data }
	p.run(maxProbeInterval)
	require.LessOrEqual(t, s.probes, uint8(1))
	p.lose = nil
	p.run(1000 * ms)
	require.Equal(t, []string{"x"}, p.got[1])
	p.requireIdle()
}

// TestProbeIntervalIsBounded checks that the first probe interval is bounded for any round-trip
// time, and doubles up to the maximum interval.
func TestProbeIntervalIsBounded(t *testing.T) {
	var s sendState
	require.EqualValues(t, 10*ms, s.probeInterval(), "before the first sample")
	s.rtt.OnSent(1, 0)
	s.rtt.OnAck(1 + 100*ms)
	require.EqualValues(t, 20*ms, s.probeInterval())
	s.probes = 2
	require.EqualValues(t, 80*ms, s.probeInterval())
	s.probes = 100
	require.EqualValues(t, 256*ms, s.probeInterval())
}

// TestProbesAreNotDeferred checks that neither received nor sent packets defer a probe.
func TestProbesAreNotDeferred(t *testing.T) {
	p := newPair(t, Options{})
	p.send(0, "x") // for a known round-trip time
	p.run(100 * ms)
	p.lose = func(from int, h *Header) bool { return from == 0 && h.Kind == Data || from == 1 && h.Kind == Nack }
	p.send(0, "lost")
	for range 50 {
		p.send(1, "x")
		p.run(300 * us)
	}
	require.NotZero(t, p.end[0].Stats.Probes)
	asks := p.end[0].Stats.Probes
	for range 50 {
		p.send(0, "lost as well")
		p.run(300 * us)
	}
	require.Greater(t, p.end[0].Stats.Probes, asks)
	p.lose = nil
	p.run(1000 * ms)
	require.Len(t, p.got[1], 52)
	p.requireIdle()
}

// TestTail checks that the sender probes after the loss of a tail, which the receiver cannot
// detect.
func TestTail(t *testing.T) {
	p := newPair(t, Options{})
	p.lose = loseOnce(func(_ int, h *Header) bool { return h.Kind == Data })
	p.send(0, "tail")
	p.run(1000 * ms)
	require.Equal(t, []string{"tail"}, p.got[1])
	require.Equal(t, []string{
		"  0.000 ms  a > b  DATA  0 (tx 1)  LOST",
		" 10.000 ms  a > b  PROBE up to 1 (tx 2)",
		" 10.010 ms  b > a  NACK  0 echo 2",
		" 10.020 ms  a > b  DATA  0 (tx 3)",
		" 11.020 ms  b > a  ACK   1 echo 3",
	}, p.log)
	p.requireIdle()
}

// TestLostAck checks that a lost acknowledgement is probed for, without retransmitting the packets.
func TestLostAck(t *testing.T) {
	p := newPair(t, Options{})
	p.lose = loseOnce(func(_ int, h *Header) bool { return h.Kind == Ack })
	p.send(0, "x")
	p.run(1000 * ms)
	require.Len(t, p.got[1], 1)
	require.EqualValues(t, 1, p.end[0].Stats.Probes)
	require.Zero(t, p.end[0].Stats.Retransmitted)
	p.requireIdle()
}

// TestFragments checks a long message in fragments, with losses, and a message of 0 bytes in one
// packet.
func TestFragments(t *testing.T) {
	p := newPair(t, Options{})
	most := maxPackets * (minMTU - DataSize)
	long := strings.Repeat("0123456789", most/10+1)[:most]
	n := 0
	p.lose = func(_ int, h *Header) bool { n++; return h.Kind == Data && n%5 == 0 }
	p.send(0, long)
	p.send(0, "")
	p.send(0, long[:minMTU-DataSize])
	require.ErrorIs(t, p.end[0].Send(p.now, 1, []byte(long), []byte{1}), ErrTooLong)
	p.run(1000 * ms)
	require.Equal(t, []string{long, "", long[:minMTU-DataSize]}, p.got[1])
	require.NotZero(t, p.end[0].Stats.Retransmitted)
	p.requireIdle()
}

// TestWindowIsBounded checks that at most a window of packets is in flight to a peer, and that a
// blocked sender gets an event when there is space.
func TestWindowIsBounded(t *testing.T) {
	p := newPair(t, Options{})
	for range Window {
		p.send(0, "x")
	}
	require.ErrorIs(t, p.end[0].Send(p.now, 1, nil, nil), ErrWouldBlock)
	require.Empty(t, p.events(0))
	p.run(1000 * ms)
	require.Equal(t, []Event{{1, Writable}}, p.events(0))
	p.send(0, "y")
	p.run(1000 * ms)
	require.Len(t, p.got[1], Window+1)
	p.requireIdle()
}

// TestHello checks that an unknown epoch is requested, and that no packet is sent to a peer that is
// not open.
func TestHello(t *testing.T) {
	p := newPair(t, Options{})
	p.start(0, 7, Options{})
	require.ErrorIs(t, p.end[0].Send(p.now, 1, nil, nil), ErrWouldBlock)
	p.run(100 * ms)
	require.Empty(t, p.log)
	p.open(0, 0)
	p.lose = loseOnce(func(_ int, h *Header) bool { return h.Kind == Hello })
	p.run(100 * ms)
	require.Equal(t, []Event{{1, Writable}}, p.events(0))
	p.send(0, "hello")
	p.run(100 * ms)
	require.Equal(t, []string{"hello"}, p.got[1])
	require.EqualValues(t, 2, p.end[0].Stats.Probes)
	p.requireIdle()
}

// TestRestart checks that both the sender and the receiver detect a restarted peer, and that the
// first message to the new incarnation arrives.
func TestRestart(t *testing.T) {
	for _, first := range []int{0, 1} { // the end that sends first
		p := newPair(t, Options{})
		p.send(0, "before")
		p.run(100 * ms)
		p.start(1, 9, Options{})
		p.open(1, 7)
		p.send(first, "lost if to an old life")
		p.run(100 * ms)
		require.Equal(t, []Event{{1, Restarted}}, p.events(0))
		p.send(0, "to the new")
		p.run(100 * ms)
		require.Equal(t, []string{"before", "to the new"}, p.got[1])
		require.Equal(t, first, len(p.got[0]))
		p.requireIdle()
	}
}

// TestOldEpochs checks that packets from or for an earlier incarnation are dropped at any time.
func TestOldEpochs(t *testing.T) {
	p := newPair(t, Options{})
	var old [][]byte
	p.lose = func(from int, h *Header) bool {
		if h.Kind == Data {
			b := make([]byte, DataSize+3)
			h.Put(b)
			copy(b[DataSize:], "old")
			old = append(old, b)
		}
		return false
	}
	p.send(0, "old")
	p.send(1, "old")
	p.run(100 * ms)
	p.start(1, 9, Options{})
	p.open(1, 7)
	p.send(1, "new")
	p.run(100 * ms)
	require.Equal(t, DropStaleDestination, p.handle(1, old[0]))
	require.Equal(t, DropOldEpoch, p.handle(0, old[1]))
	require.True(t, p.end[1].peers.Get(0).control.hello, "a HELLO is pending")
	require.False(t, p.end[0].peers.Get(1).control.hello)
	h := Header{Kind: Probe, Epoch: 9, To: 70} // for the next incarnation
	var b [probeSize]byte
	h.Put(b[:])
	require.Equal(t, DropStaleDestination, p.handle(0, b[:]))
	require.False(t, p.end[0].peers.Get(1).control.hello, "no HELLO for another incarnation")
	p.run(100 * ms)
	require.Equal(t, []string{"old", "new"}, p.got[0])
	require.Equal(t, []string{"old"}, p.got[1])
	require.Equal(t, []Event{{1, Restarted}}, p.events(0))
	p.requireIdle()
}

// TestGiveUpByDefault checks that a silent peer fails after 30 s by default.
func TestGiveUpByDefault(t *testing.T) {
	p := newPair(t, Options{})
	p.lose = func(int, *Header) bool { return true }
	p.send(0, "x")
	p.run(29_900 * ms)
	require.Empty(t, p.events(0))
	p.run(30_300 * ms)
	require.Equal(t, []Event{{1, TimedOut}}, p.events(0))
}

// TestGiveUp checks that a silent peer fails, also if it has sent part of a message, and that its
// state is freed.
func TestGiveUp(t *testing.T) {
	p := newPair(t, Options{GiveUp: 900 * ms})
	p.lose = func(int, *Header) bool { return true }
	p.send(0, "x")
	p.run(899 * ms)
	require.Empty(t, p.events(0))
	require.Less(t, len(p.log), 15, "probed at growing intervals")
	p.run(1000 * ms)
	require.Equal(t, []Event{{1, TimedOut}}, p.events(0))
	require.ErrorIs(t, p.end[0].Send(p.now, 1, nil, nil), ErrPeerClosed)
	p.requireIdle()

	p = newPair(t, Options{GiveUp: 900 * ms})
	p.send(0, strings.Repeat("x", 3*minMTU))
	p.lose = func(_ int, h *Header) bool { return h.Seq != 1 && h.Kind == Data || h.Kind == Probe }
	p.run(1 * ms)
	p.end[0].ClosePeer(1)
	p.run(2000 * ms)
	require.Equal(t, []Event{{0, TimedOut}}, p.events(1))
	p.requireIdle()
}

// TestClose checks that a closed peer sends and receives no packets.
func TestClose(t *testing.T) {
	p := newPair(t, Options{})
	p.send(0, strings.Repeat("x", 3*minMTU))
	p.send(1, strings.Repeat("y", 3*minMTU))
	var out [9]Packet
	n := p.end[0].Drain(p.now, out[:2])
	require.Equal(t, 2, n)
	p.end[0].ClosePeer(1)
	require.ErrorIs(t, p.end[0].Send(p.now, 1, nil, nil), ErrPeerClosed)
	require.Zero(t, p.end[0].Drain(p.now, out[2:]))
	p.run(50 * ms)
	require.ErrorContains(t, p.end[0].idle(), "2 slots are not free", "the adapter has them still")
	p.end[0].ReleaseSlot(out[0].Slot)
	p.end[0].ReleaseSlot(out[1].Slot)
	require.NoError(t, p.end[0].idle())
	require.Empty(t, p.got[0])
	require.NotZero(t, p.end[0].Stats.Dropped[DropPeerClosed])

	p.end[0].OpenPeer(p.now, 1, Peer{Epoch: 8})
	require.ErrorIs(t, p.end[0].Send(p.now, 1, nil, nil), ErrPeerClosed, "in this life of the peer")
	p.end[0].OpenPeer(p.now, 1, Peer{Epoch: 9})
	require.NoError(t, p.end[0].Send(p.now, 1, nil, nil))
}

// TestCloseWhileDelivering checks that a message whose delivery closes its sender is the last one.
func TestCloseWhileDelivering(t *testing.T) {
	p := newPair(t, Options{})
	p.lose = loseOnce(func(_ int, h *Header) bool { return h.Kind == Data })
	for range 5 {
		p.send(0, "x")
	}
	var out [9]Packet
	got := 0
	for _, k := range out[:p.end[0].Drain(p.now, out[:])] {
		if k.Bytes[19] != 0 { // the second one
			p.handle(1, k.Bytes)
		}
		p.end[0].ReleaseSlot(k.Slot)
	}
	require.Equal(t, DropNone, p.end[1].HandlePacket(p.now, 0, out[0].Bytes, func([]byte) {
		got++
		p.end[1].ClosePeer(0)
	}))
	require.Equal(t, 1, got)
	p.run(50 * ms)
	require.NoError(t, p.end[1].idle())
}

// TestStoppedTimeDoesNotCount checks that the time in which this end does not run does not count towards
// GiveUp, for a silent peer and for an incomplete message.
func TestStoppedTimeDoesNotCount(t *testing.T) {
	const giveUp, stop = 900 * ms, 10_000 * ms
	for name, lost := range map[string]func(from int, h *Header) bool{
		"no answer":      func(int, *Header) bool { return true },
		"half a message": func(_ int, h *Header) bool { return h.Kind == Data && h.Flags&Last != 0 },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, Options{GiveUp: giveUp})
			p.lose = lost
			p.send(0, strings.Repeat("x", 3*minMTU))
			p.run(10 * ms)
			p.now += stop // neither end runs, so no packet has arrived
			p.lose = nil
			p.run(2000 * ms)
			require.Empty(t, p.events(0))
			require.Empty(t, p.events(1))
			require.Len(t, p.got[1], 1)
			p.requireIdle()
		})
	}
}
