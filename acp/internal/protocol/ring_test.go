package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// world is two ends of a ring whose writes are delayed, but in order.
type world struct {
	t           *rapid.T
	s           *protocol.Sender
	r           *protocol.Receiver
	size        int
	ring        [][]byte // the receiver's slots
	slots       [][]byte // the sender's slots
	wire        []func() // puts in flight, the oldest first
	back        []func() // the receiver's puts in flight
	tail        uint64   // mirrored
	imm, bye    bool
	sent, queue [][]byte // messages: started and not received, not started or in part
	got         []byte   // received part of the current message
	received    int
	end         bool
}

// TestRing interleaves the steps of two ends and of the network, and compares the ring with a
// queue. No slot may be overwritten in use, and no free slot may stay unused.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, size: 8 * rapid.IntRange(2, 5).Draw(t, "size"), imm: rapid.Bool().Draw(t, "imm")}
		slots, ring := rapid.IntRange(1, 5).Draw(t, "send slots"), rapid.IntRange(1, 5).Draw(t, "receive slots")
		w.s, w.r = protocol.NewSender(w.size, slots), protocol.NewReceiver(w.size, ring)
		w.s.Connect(ring)
		w.ring, w.slots = make([][]byte, ring), make([][]byte, slots)
		for i := range w.ring {
			w.ring[i] = make([]byte, w.size)
		}
		total := 0
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				if w.bye {
					t.Skip("it is over")
				}
				w.queue = append(w.queue, rapid.SliceOfN(rapid.Byte(), 0, 4*w.size).Draw(t, "message"))
				total++
			},
			"put":     func(*rapid.T) { w.fillSlot() },
			"bye":     func(*rapid.T) { w.sayBye() },
			"deliver": func(*rapid.T) { deliver(&w.wire) },
			"return":  func(*rapid.T) { deliver(&w.back) },
			"take":    func(*rapid.T) { w.consumeSlot() },
			"": func(*rapid.T) {
				require.LessOrEqual(t, w.s.FreeSlots(), min(slots, ring))
				require.LessOrEqual(t, w.r.AvailableSlots(), ring)
			},
		})
		for range 1000 { // all puts in flight arrive
			w.fillSlot()
			deliver(&w.wire)
			w.consumeSlot()
			deliver(&w.back)
		}
		require.Equal(t, total, w.received)
		require.Empty(t, w.queue)
		require.True(t, w.s.AllSent())
		require.Equal(t, w.bye, w.end)
	})
}

func deliver(wire *[]func()) {
	if len(*wire) > 0 {
		(*wire)[0]()
		*wire = (*wire)[1:]
	}
}

// fillSlot fills a slot, if there is a message and a free slot.
func (w *world) fillSlot() {
	if len(w.queue) == 0 {
		return
	}
	m := w.queue[0]
	if number, begins := w.s.NextMessage(); begins && len(m)%5 == 4 {
		if g, ok := w.s.NextDirect(); ok {
			require.EqualValues(w.t, w.received+len(w.sent), number)
			slot := make([]byte, w.size)
			protocol.PutHeader(slot, uint64(len(m))|protocol.DirectFlag)
			w.sent, w.queue = append(w.sent, m), w.queue[1:]
			w.sendSlot(g, slot)
		}
		return
	}
	ahead := w.s.NextLen(len(m))
	g, ok := w.s.NextSegment(len(m), len(m)%3 == 0)
	if !ok {
		return
	}
	require.Equal(w.t, ahead, g.Size())
	if g.Slot >= 0 {
		require.Nil(w.t, w.slots[g.Slot], "a slot that has not left")
	}
	slot := make([]byte, w.size)
	b := slot
	if g.HeaderLen > 0 {
		protocol.PutHeader(b, uint64(len(m)))
		b = b[g.HeaderLen:]
		w.sent = append(w.sent, m)
	}
	copy(b, m[g.Off:g.Off+g.N])
	w.sendSlot(g, slot)
	if g.Last {
		w.queue = w.queue[1:]
	}
}

// sendSlot sends a slot, followed by the tail.
func (w *world) sendSlot(g protocol.Segment, slot []byte) {
	if g.Slot >= 0 {
		w.slots[g.Slot] = slot
	}
	tail := w.s.Tail()
	w.wire = append(w.wire, func() {
		copy(w.ring[g.Ring], slot[:g.Size()])
		if g.Slot >= 0 {
			w.slots[g.Slot] = nil
			w.s.SlotSent()
		}
		if w.imm {
			require.NoError(w.t, w.r.AddSlot())
		}
	})
	if !w.imm {
		w.wire = append(w.wire, func() { w.tail = tail })
	}
}

func (w *world) sayBye() {
	if w.bye || len(w.queue) > 0 {
		return
	}
	if g, ok := w.s.NextEOF(); ok {
		slot := make([]byte, w.size)
		protocol.PutHeader(slot, protocol.EOF)
		w.sendSlot(g, slot)
		w.bye = true
	}
}

// consumeSlot consumes a slot, and returns credits.
func (w *world) consumeSlot() {
	if !w.imm {
		require.NoError(w.t, w.r.SetTail(w.tail))
	}
	if w.r.AvailableSlots() == 0 {
		return
	}
	i := w.r.NextSlot()
	g := w.r.TakeSlot(w.ring[i])
	if g.EOF {
		w.end = true
	} else {
		require.EqualValues(w.t, len(w.got), g.Off)
		require.EqualValues(w.t, len(w.sent[0]), g.Length)
		if require.Equal(w.t, len(w.sent[0])%5 == 4 && g.Off == 0 && g.Bytes == nil, g.Direct); g.Direct {
			w.got = w.sent[0]
		}
		w.got = append(w.got, g.Bytes...)
		if g.Last {
			require.Equal(w.t, string(w.sent[0]), string(w.got))
			w.sent, w.got = w.sent[1:], nil
			w.received++
			require.EqualValues(w.t, w.received, w.r.MessageCount())
		}
	}
	clear(w.ring[i]) // detects a second read
	if w.imm && !w.r.CreditsDue() {
		return
	}
	head, n := w.r.TakeCredits()
	w.back = append(w.back, func() {
		if w.imm {
			require.NoError(w.t, w.s.AddCredits(n))
		} else {
			require.NoError(w.t, w.s.SetHead(head))
		}
	})
	require.LessOrEqual(w.t, len(w.back), 1000)
}

// TestRingCredits checks that without mirrored indices at most two credit updates are in flight.
func TestRingCredits(t *testing.T) {
	for ring := 1; ring < 20; ring++ {
		s, r := protocol.NewSender(16, 100), protocol.NewReceiver(16, ring)
		s.Connect(ring)
		slot := make([]byte, 16)
		notices := 0
		for range 1000 {
			if _, ok := s.NextSegment(0, false); !ok {
				break
			}
			s.SlotSent()
			require.NoError(t, r.AddSlot())
			require.True(t, r.TakeSlot(slot).Last)
			if r.CreditsDue() {
				r.TakeCredits()
				notices++
			}
		}
		require.Positive(t, notices)
		require.LessOrEqual(t, notices, 2)
	}
}

// TestRingViolations checks that impossible indices are rejected, and possible ones are not.
func TestRingViolations(t *testing.T) {
	s, r := protocol.NewSender(16, 2), protocol.NewReceiver(16, 4)
	s.Connect(4)
	_, ok := s.NextSegment(0, false)
	require.True(t, ok)
	require.ErrorIs(t, s.SetHead(2), protocol.ErrBroken)
	require.NoError(t, s.SetHead(1))
	require.ErrorIs(t, s.SetHead(0), protocol.ErrBroken)
	require.ErrorIs(t, s.AddCredits(1), protocol.ErrBroken)
	require.ErrorIs(t, r.SetTail(5), protocol.ErrBroken)
	require.NoError(t, r.SetTail(4))
	require.ErrorIs(t, r.SetTail(3), protocol.ErrBroken)
	require.ErrorIs(t, r.AddSlot(), protocol.ErrBroken)

	slot := make([]byte, 16)
	protocol.PutHeader(slot, 1<<62)
	g := r.TakeSlot(slot)
	require.False(t, g.Last)
	require.Len(t, g.Bytes, 8)
}
