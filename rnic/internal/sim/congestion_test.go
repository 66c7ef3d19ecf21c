package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// A bottleneck is a star: senders write to one sink, whose wire has the rate and the queue.
type bottleneck struct {
	sim     *sim.Sim
	sink    *end
	senders []*end
	acked   []int // bytes of each sender
	message int
}

// A bottleneckConfig describes a bottleneck.
type bottleneckConfig struct {
	flows      int
	rate       int64
	delay      time.Duration // one way
	queue      int
	markAbove  int
	message    int
	ahead      int
	congestion string
	selective  bool // retransmission
	together   bool // all begin at the start, and not at random times within the first 20 ms
}

// newBottleneck connects the senders, which post messages without end from their starts on.
func newBottleneck(t *testing.T, seed uint64, c bottleneckConfig) *bottleneck {
	b := &bottleneck{sim: sim.New(seed), message: c.message, acked: make([]int, c.flows)}
	sinkLink := memory.Options{Rate: c.rate, Delay: c.delay, Queue: c.queue, MarkAbove: c.markAbove}
	b.sink = newEnd(t, b.sim, sim.DeviceOptions{Link: sinkLink, Congestion: c.congestion})
	for i := range c.flows {
		e := newEnd(t, b.sim, sim.DeviceOptions{Link: memory.Options{Delay: c.delay}, Congestion: c.congestion})
		q, err := b.sink.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.sink.cq, RecvCQ: b.sink.cq, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1}})
		require.NoError(t, err)
		require.NoError(t, b.sim.Connect(sim.Endpoint{Device: e.dev, QP: e.qp, Selective: c.selective}, sim.Endpoint{Device: b.sink.dev, QP: q, Selective: c.selective}))
		b.senders = append(b.senders, e)
		posted, seen, take := 0, 0, e.dev.App
		begun := c.together
		e.dev.ScheduleAt(time.Duration(b.sim.Rand().Int64N(int64(20*time.Millisecond))), func() { begun = true })
		e.dev.App = func() {
			take()
			for _, wc := range e.wcs[seen:] {
				require.Equal(t, verbs.WCSuccess, wc.Status)
				b.acked[i] += c.message
			}
			seen = len(e.wcs)
			for begun && posted < seen+c.ahead {
				_, err := e.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
					SGList: []verbs.SGE{e.mr.SGE(0, c.message)}, RKey: b.sink.mr.RKey()}})
				require.NoError(t, err)
				posted++
			}
		}
	}
	return b
}

// A shares is the result of a time at a bottleneck.
type shares struct {
	jain, goodput float64 // of the bytes of the flows; bits a second
	peak          int     // of the queue, bytes
	marked        uint64
}

// measure runs for d and returns the shares of the flows meanwhile.
func (b *bottleneck) measure(d time.Duration) shares {
	before := append([]int(nil), b.acked...)
	b.sink.dev.Port().TakeQueue()
	b.sim.RunFor(d)
	sum, squares := 0.0, 0.0
	for i, n := range b.acked {
		x := float64(n - before[i])
		sum += x
		squares += x * x
	}
	r := shares{jain: sum * sum / squares / float64(len(b.acked)), goodput: sum * 8 / d.Seconds()}
	r.peak, r.marked = b.sink.dev.Port().TakeQueue()
	return r
}

func (s shares) String() string {
	return fmt.Sprintf("Jain %.3f, %.0f Mbit/s, queue up to %d KB, %d marked", s.jain, s.goodput/1e6, s.peak/1000, s.marked)
}

// TestFairShares checks that flows through one bottleneck of 1 Gbit/s have equal shares and a short
// queue, with marks (ECN) and without, with go-back-N and, few of them, with selective retransmission.
// The buffer holds 8.4 ms. Without marks, flows that began beside others learn the round trip without a
// queue only as these let it drain, so that shares become equal within a second, or some seconds with
// many flows.
func TestFairShares(t *testing.T) {
	const lan, metro = 20 * time.Microsecond, 500 * time.Microsecond // one way
	for _, c := range []struct {
		flows, marks int
		delay        time.Duration
		jain         float64
		queue        int // bytes
	}{
		{2, 65_000, lan, 0.95, 200_000}, {8, 65_000, lan, 0.95, 200_000}, {64, 65_000, lan, 0.95, 800_000},
		{2, 65_000, metro, 0.95, 200_000}, {8, 65_000, metro, 0.95, 200_000}, {64, 65_000, metro, 0.95, 800_000},
		{2, 0, lan, 0.95, 200_000}, {8, 0, lan, 0.95, 250_000}, {64, 0, lan, 0.6, 800_000},
		{2, 0, metro, 0.95, 200_000}, {8, 0, metro, 0.8, 250_000}, {64, 0, metro, 0.6, 800_000},
	} {
		t.Run(fmt.Sprintf("%d flows, marks above %d, %v", c.flows, c.marks, c.delay), func(t *testing.T) {
			if testing.Short() && c.flows > 8 {
				t.Skip("64 flows take seconds")
			}
			for i, selective := range []bool{false, true}[:2/(1+c.flows/64)] {
				b := newBottleneck(t, uint64(1+i), bottleneckConfig{flows: c.flows, selective: selective, rate: 1e9, delay: c.delay, queue: 1 << 20,
					markAbove: c.marks, message: 16 << 10, ahead: 8, congestion: "auto"})
				first, r := b.measure(700*time.Millisecond), b.measure(300*time.Millisecond)
				t.Logf("%v, then %v", first, r)
				require.Greater(t, r.jain, c.jain)
				require.Less(t, r.peak, c.queue)
				require.Greater(t, r.goodput, 0.85e9)
				require.Equal(t, c.marks > 0, r.marked > 0)
			}
		})
	}
}

// TestWithoutControl checks that the same flows without congestion control fill the buffer, so that
// the bottleneck is one.
func TestWithoutControl(t *testing.T) {
	b := newBottleneck(t, 1, bottleneckConfig{flows: 8, rate: 1e9, delay: 20 * time.Microsecond, queue: 1 << 20, message: 64 << 10, ahead: 16, congestion: "off"})
	b.measure(100 * time.Millisecond)
	require.Greater(t, b.measure(100*time.Millisecond).peak, 1_000_000)
}

// TestIncast checks that 32 senders that begin at once use the link of the receiver, with a buffer of
// 1 MiB.
func TestIncast(t *testing.T) {
	for _, marks := range []int{100_000, 0} {
		b := newBottleneck(t, 1, bottleneckConfig{flows: 32, rate: 10e9, delay: 10 * time.Microsecond, queue: 1 << 20,
			markAbove: marks, message: 16 << 10, ahead: 8, congestion: "auto", together: true})
		r := b.measure(200 * time.Millisecond)
		t.Log(r)
		require.Greater(t, r.goodput, 0.9*10e9, "with the start")
	}
}
