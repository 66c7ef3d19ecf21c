package impair

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGroupsStay checks that packets that no impairment applies to leave as one group, whatever
// happens to the others.
func TestGroupsStay(t *testing.T) {
	tests := []struct {
		spec, want string
		groups     []int
	}{
		{"", "0 1 2 3 4 5 6 7", []int{8}},
		{"drop NAK", "0 1 2 3 4 5 6 7", []int{8}},
		{"drop psn 3", "0 1 2 4 5 6 7", []int{7}},
		{"duplicate psn 3", "0 1 2 3 3 4 5 6 7", []int{9}},
		{"corrupt icrc psn 3", "0 1 2 3! 4 5 6 7", []int{8}},
		{"delay 1ms psn 3", "0 1 2 4 5 6 7 3", []int{7, 1}},
		{"mark ecn psn 3", "0 1 2 3 4 5 6 7", []int{3, 1, 4}}, // one traffic class per send
	}
	for _, test := range tests {
		t.Run(test.spec, func(t *testing.T) {
			r := newRig(t, test.spec)
			r.send(train(wire.RCSendMiddle, 8)...)
			got := r.runPeer()
			require.Equal(t, test.want, psns(got))
			require.Equal(t, test.groups, groups(got))
		})
	}
}

// recorder records the batches that reach the inner link.
type recorder struct {
	link.Conn
	batches []*link.Batch
	sizes   []int
}

func (r *recorder) Unwrap() link.Conn { return r.Conn }

func (r *recorder) WriteBatch(b *link.Batch) error {
	r.batches = append(r.batches, b)
	r.sizes = append(r.sizes, b.Len())
	return r.Conn.WriteBatch(b)
}

// TestPassedOn checks that a batch that no impairment applies to is not copied.
func TestPassedOn(t *testing.T) {
	n := memory.New(1)
	inner := &recorder{Conn: must(n.Attach(here, memory.Options{}))}
	c, err := New(inner, parse("loss 0% duplicate 0%; drop NAK; mark ecn CNP"), n.Now)
	require.NoError(t, err)
	b := link.NewBatch(1 << 16)
	for _, p := range train(wire.RCSendMiddle, 5) {
		p.appendTo(b, ways)
	}
	require.NoError(t, c.WriteBatch(b))
	require.Equal(t, []*link.Batch{b}, inner.batches)

	require.Equal(t, inner, c.Unwrap())
	require.Equal(t, here, c.LocalAddr())
	require.True(t, c.Caps().ExactID)
	require.EqualValues(t, 5, link.StatsOf(c).SendUnreachable)
}

// TestFullBatch duplicates more packets than the new batch can hold.
func TestFullBatch(t *testing.T) {
	n := memory.New(1)
	inner := &recorder{Conn: must(n.Attach(here, memory.Options{}))}
	peer := must(n.Attach(there, memory.Options{}))
	c, err := New(inner, parse("duplicate SEND"), n.Now)
	require.NoError(t, err)
	b := link.NewBatch(batchBytes)
	for i := range 60 {
		packet{op: wire.RCSendMiddle, qpn: 7, psn: wire.PSN(i), payload: 4096}.appendTo(b, ways)
	}
	require.NoError(t, c.WriteBatch(b))
	require.Equal(t, []int{63, 57}, inner.sizes)
	r := &rig{t: t, network: n, conn: c, peer: peer, read: link.NewDatagrams(4)}
	require.Equal(t, 120, len(r.runPeer()))
}

func TestSetSpec(t *testing.T) {
	r := newRig(t, "drop 2nd; delay 1ms FIRST")
	r.send(train(wire.RCSendFirst, 3)...)
	require.Equal(t, 2, r.conn.Counts().Held)

	require.Error(t, r.conn.SetSpec(Spec{Limit: -1}))
	require.Equal(t, parse("drop 2nd; delay 1ms FIRST"), r.conn.Spec(), "nothing changed")

	require.NoError(t, r.conn.SetSpec(parse("drop 3rd")))
	r.send(train(wire.RCSendMiddle, 3)...)
	require.Equal(t, "0 1 0 2", psns(r.runPeer()), "rules count anew, held packets come")
	require.NoError(t, r.conn.SetSpec(Spec{}))
	r.send(train(wire.RCSendMiddle, 3)...)
	require.Equal(t, "0 1 2", psns(r.runPeer()))
	require.EqualValues(t, 2, r.conn.Counts().Dropped, "of all Specs")
	require.Empty(t, r.conn.Counts().Rules)
}

// TestNotFlushed checks that delayed packets leave in calls other than Flush.
func TestNotFlushed(t *testing.T) {
	for name, call := range map[string]func(r *rig){
		"WriteBatch": func(r *rig) { r.send() },
		"ReadBatch":  func(r *rig) { r.conn.ReadBatch(r.read) },
		"Wait":       func(r *rig) { r.conn.Wait(0) },
	} {
		r := newRig(t, "delay 1ms")
		r.send(train(wire.RCSendMiddle, 1)...)
		r.network.AdvanceTo(int64(time.Millisecond) - 1)
		call(r)
		require.Equal(t, 1, r.conn.Counts().Held, name)
		r.network.AdvanceTo(int64(time.Millisecond))
		call(r)
		require.Equal(t, 0, r.conn.Counts().Held, name)
		require.Equal(t, []time.Duration{time.Millisecond}, arrivalTimes(r.runPeer()), name)
	}
}

// openLive returns an impaired link and its peer in real time.
func openLive(t *testing.T, spec string) (*Conn, *memory.Conn) {
	n := memory.NewLive()
	c, err := New(must(n.Attach(here, memory.Options{})), parse(spec), nil)
	require.NoError(t, err)
	return c, must(n.Attach(there, memory.Options{}))
}

// TestWaitSends checks that Wait alone sends a delayed packet.
func TestWaitSends(t *testing.T) {
	c, peer := openLive(t, "delay 2ms")
	var waiter sync.WaitGroup
	waiter.Go(func() {
		for {
			if _, err := c.Wait(-1); err != nil {
				return
			}
		}
	})
	b := link.NewBatch(1 << 16)
	train(wire.RCSendMiddle, 1)[0].appendTo(b, ways)
	start := time.Now()
	require.NoError(t, c.WriteBatch(b))
	readable, err := peer.Wait(-1)
	require.NoError(t, err)
	require.True(t, readable)
	require.GreaterOrEqual(t, time.Since(start), 2*time.Millisecond)
	require.NoError(t, c.Close())
	waiter.Wait()
	require.ErrorIs(t, c.WriteBatch(b), net.ErrClosed)
	_, err = c.ReadBatch(link.NewDatagrams(1))
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestWaitForArrival waits for an inbound packet that a rule delays.
func TestWaitForArrival(t *testing.T) {
	c, peer := openLive(t, "delay 2ms in")
	b := link.NewBatch(1 << 16)
	train(wire.RCSendMiddle, 1)[0].appendTo(b, back)
	start := time.Now()
	require.NoError(t, peer.WriteBatch(b))
	r := link.NewDatagrams(1)
	for len(r.Msgs()) == 0 {
		_, err := c.Wait(-1)
		require.NoError(t, err)
		_, err = c.ReadBatch(r)
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, time.Since(start), 2*time.Millisecond)
}

// TestConcurrent has a writer, a reader, waiters and changes of the Spec, for the race detector.
// All packets that were sent must arrive.
func TestConcurrent(t *testing.T) {
	const rounds, size = 300, 10
	c, peer := openLive(t, "")
	done := make(chan struct{})
	var others sync.WaitGroup
	for _, work := range []func(){
		func() { c.Wait(time.Millisecond) },
		func() { c.ReadBatch(link.NewDatagrams(1)) },
		func() { c.SetSpec(parse("delay 10us 10us; duplicate every 3rd; delay 5us in")) },
		func() { c.Counts() },
	} {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					work()
				}
			}
		})
	}
	b := link.NewBatch(1 << 16)
	for range rounds {
		b.Reset()
		for _, p := range train(wire.RCSendMiddle, size) {
			p.appendTo(b, ways)
		}
		require.NoError(t, c.WriteBatch(b))
		b.Reset()
		train(wire.RCSendMiddle, 1)[0].appendTo(b, back)
		require.NoError(t, peer.WriteBatch(b))
	}
	close(done)
	others.Wait()
	for due := c.NextDue(); c.Counts().Held > 0; due = c.NextDue() {
		require.NoError(t, c.Flush(due))
		c.ReadBatch(link.NewDatagrams(64))
	}
	counts := c.Counts()
	require.Equal(t, rounds*size+counts.Duplicated-counts.Overflow, link.StatsOf(peer).ReceivedPackets+countPackets(t, peer))
}

// countPackets reads and counts the packets in the receive queue.
func countPackets(t *testing.T, c link.Conn) (packets uint64) {
	r := link.NewDatagrams(64)
	for {
		n, err := c.ReadBatch(r)
		require.NoError(t, err)
		if n == 0 {
			return packets
		}
		for _, d := range r.Msgs() {
			packets += uint64(d.Count())
		}
	}
}

func TestNoAllocation(t *testing.T) {
	n := memory.New(1)
	c, err := New(must(n.Attach(here, memory.Options{})), parse(
		"loss 5% delay 2us 1us reorder 5% duplicate 5% corrupt 5%; drop every 9th WRITE; mark ecn every 5th SEND; drop psn +3; delay 1us in every 3rd; drop in every 4th"), n.Now)
	require.NoError(t, err)
	peer := must(n.Attach(there, memory.Options{}))
	b, r := link.NewBatch(1<<16), link.NewDatagrams(4)
	all := train(wire.RCSendMiddle, 10)
	lap := func() {
		b.Reset()
		for _, p := range all {
			p.appendTo(b, ways)
		}
		c.WriteBatch(b)
		b.Reset()
		for _, p := range all {
			p.appendTo(b, back)
		}
		peer.WriteBatch(b)
		n.AdvanceTo(n.Now() + 1000)
		for _, conn := range []link.Conn{c, peer} {
			for n := 1; n > 0; n, _ = conn.ReadBatch(r) {
			}
		}
	}
	for range 1000 {
		lap()
	}
	require.Zero(t, testing.AllocsPerRun(1000, lap))
}

// TestUDP checks the same impairments on sockets.
func TestUDP(t *testing.T) {
	open := func() link.Conn {
		c, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
	inner, peer := open(), open()
	c, err := New(inner, parse("drop 3rd; corrupt icrc of psn 4; duplicate psn 6; delay 1ms psn 1"), nil)
	require.NoError(t, err)
	b := link.NewBatch(1 << 16)
	for _, p := range train(wire.RCSendMiddle, 8) {
		p.appendTo(b, &wire.Path{Dst: peer.LocalAddr()})
	}
	require.NoError(t, c.WriteBatch(b))
	for c.NextDue() != 0 {
		_, err := c.Wait(-1)
		require.NoError(t, err)
	}
	var got []seen
	r, s := link.NewDatagrams(4), wire.NewICRC(inner.LocalAddr(), peer.LocalAddr())
	for len(got) < 8 {
		readable, err := peer.Wait(10 * time.Second)
		require.NoError(t, err)
		require.True(t, readable, "%s", psns(got))
		_, err = peer.ReadBatch(r)
		require.NoError(t, err)
		for _, d := range r.Msgs() {
			for i := range d.Count() {
				icrc, _ := s.Check(d.Packet(i), uint16(i))
				got = append(got, seen{psn: wire.ParseBTH(d.Packet(i)).PSN, icrc: icrc})
			}
		}
	}
	require.Equal(t, "0 3 4! 5 6 6 7 1", psns(got))
}

func TestIdle(t *testing.T) {
	for text, idle := range map[string]bool{
		"": true, "seed 7 limit 3": true, "duplicate 0% corrupt 0%": true,
		"loss 0%": false, "delay 1ns": false, "duplicate 1%": false, "corrupt 1%": false, "rate 1bit": false, "drop NAK": false,
	} {
		spec := parse(text)
		require.Equal(t, idle, spec.Idle(), text)
	}
}
