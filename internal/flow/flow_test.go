package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/flow"
)

var controlNames = []flow.Control{flow.NIC, flow.RDMA, flow.Credit}

// drawSizes draws small and odd sizes: rings of other lengths than the send
// buffer, windows that divide nothing, queues of a few messages.
func drawSizes(t *rapid.T, d flow.Control) sizes {
	z := sizes{design: d, queue: rapid.IntRange(1, 20).Draw(t, "queue")}
	switch d {
	case flow.Credit:
		z.send, z.ring = rapid.IntRange(1, 12).Draw(t, "send"), rapid.IntRange(1, 12).Draw(t, "ring")
		z.size, z.peer = rapid.IntRange(1, 20).Draw(t, "size"), rapid.IntRange(1, 20).Draw(t, "peer")
	case flow.RDMA:
		z.send, z.ring = rapid.IntRange(1, 200).Draw(t, "send"), rapid.IntRange(1, 200).Draw(t, "ring")
		z.most = rapid.IntRange(flow.ReservedCredits+1, 20).Draw(t, "most")
		z.first = rapid.IntRange(1, z.send).Draw(t, "first")
	case flow.NIC:
		z.ring = rapid.IntRange(2, 200).Draw(t, "ring")
		z.window = rapid.IntRange(1, z.ring/2).Draw(t, "window")
		z.send = rapid.IntRange(1, 200).Draw(t, "send")
		z.first = rapid.IntRange(1, z.send).Draw(t, "first")
		z.most = rapid.IntRange(1, 40).Draw(t, "most")
	}
	return z
}

// runRandom executes operations in random order.
func runRandom(t *rapid.T, d flow.Control) {
	p := newPipe(t, drawSizes(t, d))
	size := rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, 300))
	t.Repeat(map[string]func(*rapid.T){
		"write": func(t *rapid.T) { p.write(size.Draw(t, "n"), false) },
		"send":  func(t *rapid.T) { p.send(size.Draw(t, "n")) },
		"mark":  func(t *rapid.T) { p.write(size.Draw(t, "n"), true) },
		"post":  func(t *rapid.T) { p.post() },
		"control": func(t *rapid.T) {
			if d == flow.NIC || p.credits.Available() >= flow.ReservedCredits {
				p.sendEmpty(control)
			}
		},
		"read":    func(t *rapid.T) { p.read(size.Draw(t, "n")) },
		"deliver": func(t *rapid.T) { p.deliver() },
		"pass": func(t *rapid.T) {
			for range rapid.IntRange(1, 9).Draw(t, "messages") {
				p.deliver()
			}
		},
		"complete": func(t *rapid.T) { p.complete(rapid.IntRange(1, 5).Draw(t, "n")) },
		"report":   func(t *rapid.T) { p.report() },
		"due":      func(t *rapid.T) { p.reportIfDue() },
		"hear":     func(t *rapid.T) { p.handleReport() },
		"change": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "now") == 0 {
				p.change(rapid.IntRange(0, 50).Draw(t, "more"))
			}
		},
		"spill": func(t *rapid.T) { p.spill(size.Draw(t, "n")) },
		"":      func(*rapid.T) { p.check() },
	})
	p.drain()
}

// spill moves data out of the ring.
func (p *pipe) spill(most int) {
	r, ok := p.r.(*flow.NICReceiver)
	if !ok {
		return
	}
	before, spilled, free := r.Buffered(), r.Spilled(), r.Free()
	n := r.Spill(most)
	require.Equal(p.t, max(0, min(most-spilled, len(p.ring)-free)), n)
	require.Equal(p.t, free+n, r.Free(), "what is moved makes room")
	require.Equal(p.t, before, r.Buffered())
	require.Equal(p.t, spilled+n, r.Spilled())
	p.postReceives()
}

// TestQueue checks that every flow control is a queue of bytes.
func TestQueue(t *testing.T) {
	for _, d := range controlNames {
		t.Run(d.String(), rapid.MakeCheck(func(t *rapid.T) { runRandom(t, d) }))
	}
}

func FuzzQueue(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { runRandom(t, rapid.SampledFrom(controlNames).Draw(t, "design")) }))
}

// TestUnread checks that without a reader exactly the data that the flow control permits is sent.
func TestUnread(t *testing.T) {
	for _, d := range controlNames {
		t.Run(d.String(), rapid.MakeCheck(func(t *rapid.T) {
			z := drawSizes(t, d)
			p := newPipe(t, z)
			for stuck := false; !stuck; {
				stuck = p.send(rapid.IntRange(1, 50).Draw(t, "n")) == 0
				for p.deliver() {
					stuck = false
				}
				if len(p.arrived) > 0 {
					p.complete(len(p.arrived))
					stuck = false
				}
			}
			switch d {
			case flow.Credit: // a message in each buffer
				require.Len(t, p.lengths, z.ring)
			case flow.RDMA: // the ring is full, or its receives are used up
				if len(p.lengths) < z.most-flow.ReservedCredits {
					require.Equal(t, z.ring, p.r.Buffered())
				}
			case flow.NIC: // no window is free
				require.Less(t, p.r.(*flow.NICReceiver).Free(), 2*z.window)
			}
			p.drain()
		}))
	}
}

// TestRingChange checks that with another ring the sender continues at once, although the first is
// still full.
func TestRingChange(t *testing.T) {
	for _, d := range controlNames[:2] {
		p := newPipe(t, sizes{design: d, send: 1000, ring: 100, window: 10, queue: 50, most: 50})
		pass := func() {
			for p.deliver() {
				p.complete(1)
			}
		}
		require.Equal(t, 1000, p.send(1000))
		pass()
		require.Equal(t, 100, p.r.Buffered())
		p.change(60)
		require.True(t, p.handleReport())
		if d == flow.NIC {
			require.Equal(t, 100, p.r.Buffered(), "the news is behind what the adapter holds")
			p.read(100)
		}
		pass()
		ring := p.r.(flow.RingReceiver)
		if d == flow.RDMA {
			require.Equal(t, 260, p.r.Buffered())
			require.True(t, ring.ChangingRing())
			p.read(99)
			require.True(t, ring.ChangingRing())
			p.read(1)
		}
		for ring.ChangingRing() {
			p.read(10)
			pass()
		}
		require.Equal(t, 160, p.r.Buffered())
		p.drain()
	}
}

// TestReport checks that a report is due for half of the ring, or for new receives.
func TestReport(t *testing.T) {
	r := flow.NewRDMAReceiver(make([]byte, 100), 8)
	require.NoError(t, r.Deliver(0, 100))
	r.Read(make([]byte, 49))
	_, due := r.ReportFreed(false)
	require.False(t, due)
	r.Read(make([]byte, 1))
	freed, due := r.ReportFreed(false)
	require.True(t, due)
	require.Equal(t, uint64(50), freed)
	r.Read(make([]byte, 1))
	_, due = r.ReportFreed(false)
	require.False(t, due)
	freed, due = r.ReportFreed(true)
	require.True(t, due)
	require.Equal(t, uint64(51), freed)
}

// TestViolations checks that messages that violate the protocol are errors.
func TestViolations(t *testing.T) {
	mem := make([]byte, 100)
	for _, r := range []flow.RingReceiver{flow.NewRDMAReceiver(mem, 8), flow.NewNICReceiver(mem, 40, 8)} {
		require.NoError(t, r.Deliver(0, 30))
		require.ErrorIs(t, r.Deliver(30, 71), flow.ErrOverrun)
		require.ErrorIs(t, r.Deliver(0, 10), flow.ErrMisplaced)
		require.ErrorIs(t, r.Deliver(29, 10), flow.ErrMisplaced)
		require.ErrorIs(t, r.Deliver(31, 10), flow.ErrMisplaced)
		require.ErrorIs(t, r.Deliver(-1, 10), flow.ErrMisplaced)
		require.ErrorIs(t, r.Deliver(1<<31-1, 10), flow.ErrMisplaced)
		require.ErrorIs(t, r.Deliver(30, -5), flow.ErrOverrun)
		require.NoError(t, r.Deliver(30, 40))
		require.NoError(t, r.Deliver(70, 25))
		require.Equal(t, 60, r.Read(make([]byte, 60)))
		require.ErrorIs(t, r.Deliver(95, 6), flow.ErrMisplaced, "over the end")
		require.False(t, r.SwitchRing(), "no ring was offered")
		require.Equal(t, 35, r.Buffered())
	}
	require.ErrorIs(t, flow.NewNICReceiver(mem, 40, 8).Deliver(0, 41), flow.ErrOverrun, "longer than a window")

	c := flow.NewCreditReceiver(2)
	require.NoError(t, c.Deliver(0, mem[:1]))
	require.NoError(t, c.Deliver(1, mem[:1]))
	require.ErrorIs(t, c.Deliver(0, mem[:1]), flow.ErrOverrun)

	var credits flow.Credits
	credits.Start(5)
	s := flow.NewRDMASender(mem, len(mem), 100, 8, &credits)
	s.Write(mem[:20])
	require.False(t, s.SetFreed(1), "nothing is posted")
	_, ok := s.Next()
	require.True(t, ok)
	require.False(t, s.SetFreed(21))
	require.True(t, s.SetFreed(20))
	require.True(t, s.SetFreed(10), "an older one")
}
