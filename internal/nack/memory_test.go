package nack

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// crowd is an end 0, the hub, with many peers that have only the hub as peer.
type crowd struct {
	t     testing.TB
	now   Time
	hub   *Core
	peers []*Core
	got   []int // messages, by peer
	heard int   // at the hub
	out   [64]Packet
}

// newCrowd creates the hub and peers without buffers, so that the peers do not count in
// measurements.
func newCrowd(t testing.TB, n int, o Options) *crowd {
	c := &crowd{t: t, now: 1, peers: make([]*Core, n), got: make([]int, n)}
	o.Peers, o.Epoch, o.MTU = n, 1, 1024
	c.hub = New(o)
	mem := make([]byte, n*MemorySize(4, 1024))
	for i := range c.peers {
		c.peers[i] = New(Options{Self: uint32(i), Peers: 1, Epoch: uint32(i + 2), MTU: 1024, Slots: 4, Memory: mem[i*MemorySize(4, 1024):]})
		c.peers[i].OpenPeer(c.now, 0, Peer{Epoch: 1})
	}
	return c
}

// open makes the peers known to the hub.
func (c *crowd) open() {
	for i := range c.peers {
		c.hub.OpenPeer(c.now, i, Peer{Epoch: uint32(i + 2)})
	}
}

func (c *crowd) send(peer int, b []byte) error {
	if err := c.hub.Send(c.now, peer, b, nil); err != nil {
		return err
	}
	return nil
}

// runUntilIdle runs until no packet is in flight.
func (c *crowd) runUntilIdle() {
	for some := true; some; {
		some = false
		for n := c.hub.Drain(c.now, c.out[:]); n > 0; n = c.hub.Drain(c.now, c.out[:]) {
			some = true
			for i := range c.out[:n] {
				k := &c.out[i]
				require.Equal(c.t, DropNone, c.peers[k.Peer].HandlePacket(c.now, 0, k.Bytes, func([]byte) { c.got[k.Peer]++ }))
				c.hub.ReleaseSlot(k.Slot)
			}
		}
		c.now += 5 * ms
		c.hub.Advance(c.now)
		some = some || c.hub.Deadline() != 0
		var out [4]Packet
		for i, p := range c.peers {
			p.Advance(c.now)
			for n := p.Drain(c.now, out[:]); n > 0; n = p.Drain(c.now, out[:]) {
				some = true
				for j := range out[:n] {
					require.Equal(c.t, DropNone, c.hub.HandlePacket(c.now, i, out[j].Bytes, func([]byte) { c.heard++ }))
					p.ReleaseSlot(out[j].Slot)
				}
			}
		}
	}
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestIdlePeersAreSmall checks that an idle peer, after messages of several packets, some of them
// out of order, uses at most 2 KiB.
func TestIdlePeersAreSmall(t *testing.T) {
	const n, limit = 3000, 2 << 10
	memory := make([]byte, MemorySize(512, 1024))
	c := newCrowd(t, n, Options{Slots: 512, Memory: memory})
	c.open()
	message := make([]byte, 3000)
	for i := range n {
		require.NoError(t, c.peers[i].Send(c.now, 0, message[:10], nil))
		for c.send(i, message) != nil {
			c.runUntilIdle()
		}
	}
	c.runUntilIdle()
	for i := range n { // a gap at the hub: packets are buffered
		require.NoError(t, c.peers[i].Send(c.now, 0, message[:100], nil))
		require.NoError(t, c.peers[i].Send(c.now, 0, message[:100], nil))
		var out [2]Packet
		require.Equal(t, 2, c.peers[i].Drain(c.now, out[:]))
		for _, k := range []int{1, 0} {
			require.Equal(t, DropNone, c.hub.HandlePacket(c.now, i, out[k].Bytes, func([]byte) { c.heard++ }))
			c.peers[i].ReleaseSlot(out[k].Slot)
		}
	}
	c.runUntilIdle()
	_, some := c.hub.NextEvent()
	require.False(t, some)
	require.NoError(t, c.hub.idle())
	for i := range n {
		require.Equal(t, 1, c.got[i])
	}
	require.Equal(t, 3*n, c.heard)
	require.EqualValues(t, n, c.hub.Stats.OutOfOrder)
	require.LessOrEqual(t, max(len(c.hub.freeReorderBuffers), len(c.hub.freeSendRings), len(c.hub.freeBuffers)), maxFree)
	with := heapBytes()
	c.hub = nil
	each := (with - heapBytes()) / n
	t.Logf("%d bytes a peer", each)
	require.LessOrEqual(t, each, uint64(limit))
	require.Greater(t, each, uint64(200), "there was something to count")
	runtime.KeepAlive(c)
	runtime.KeepAlive(memory)
}

// TestManyPeersFewSlots checks that all messages of a thousand peers arrive although they need more
// slots than exist.
func TestManyPeersFewSlots(t *testing.T) {
	const n, each = 1000, 3
	c := newCrowd(t, n, Options{Slots: 64})
	c.open()
	left := make([]int, n)
	try := func(i int) {
		for left[i] > 0 && c.send(i, make([]byte, 1500)) == nil {
			left[i]--
		}
	}
	for i := range left {
		left[i] = each
		try(i)
	}
	rounds := 0
	for ; ; rounds++ {
		c.runUntilIdle()
		some := false
		for e, ok := c.hub.NextEvent(); ok; e, ok = c.hub.NextEvent() {
			some = true
			require.Equal(t, Writable, e.Kind)
			try(e.Peer)
		}
		if !some {
			break
		}
	}
	for i := range left {
		require.Zero(t, left[i], "peer %d", i)
		require.Equal(t, each, c.got[i])
	}
	require.LessOrEqual(t, rounds, n*each*2/64+2, "no round in vain")
	require.NoError(t, c.hub.idle())
}

// TestIdlePeersCostNothing checks that an idle peer is in no queue and has no timer, so that the
// work for one peer does not depend on the number of others.
func TestIdlePeersCostNothing(t *testing.T) {
	c := newCrowd(t, 2000, Options{Slots: 2000})
	c.open()
	for i := range c.peers {
		require.NoError(t, c.send(i, []byte("x")))
	}
	c.runUntilIdle()
	require.Zero(t, c.hub.Deadline())
	require.NoError(t, c.send(7, []byte("x")))
	require.Equal(t, 1, c.hub.active.Len())
	require.Equal(t, 1, c.hub.Drain(c.now, c.out[:]))
	require.Equal(t, 1, c.hub.timers.Len())
}

// TestNoAllocation checks that sending and receiving messages does not allocate.
func TestNoAllocation(t *testing.T) {
	c := newCrowd(t, 8, Options{})
	c.open()
	b, out := make([]byte, 500), make([]Packet, 4)
	deliver := func([]byte) { c.heard++ }
	round := func() {
		for i, p := range c.peers {
			_ = p.Send(c.now, 0, b, b)
			for n := p.Drain(c.now, out); n > 0; n = p.Drain(c.now, out) {
				for j := range out[:n] {
					c.hub.HandlePacket(c.now, i, out[j].Bytes, deliver)
					p.ReleaseSlot(out[j].Slot)
				}
			}
			c.now += 2 * ms
			c.hub.Advance(c.now)
			for n := c.hub.Drain(c.now, out); n > 0; n = c.hub.Drain(c.now, out) {
				for j := range out[:n] {
					p.HandlePacket(c.now, 0, out[j].Bytes, deliver)
					c.hub.ReleaseSlot(out[j].Slot)
				}
			}
		}
	}
	round()
	before := c.heard
	require.Zero(t, testing.AllocsPerRun(100, round))
	require.Equal(t, 101*8, c.heard-before)
}
