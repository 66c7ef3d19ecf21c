package sim_test

import (
	"bytes"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

var (
	allGoodput   = flag.Bool("sim.goodput", false, "run TestSelectiveGoodput with all round trips and several seeds")
	goodputSeeds = flag.String("sim.goodput.seeds", "1-20", "seeds of -sim.goodput")
	onlyRTT      = flag.Duration("sim.goodput.rtt", 0, "run TestSelectiveGoodput with this round trip only")
)

// longStream is a stream of messages of 64 KiB over a path of 10 Gbit/s.
type longStream struct {
	op       verbs.WROpcode
	rtt      time.Duration
	impair   string
	seed     uint64
	messages int
	ahead    int // messages outstanding
}

// run transfers the messages and returns the goodput in Gbit/s from the completion of a third of
// them to that of the last one posted with others behind it, and the counters of the requester.
func (l longStream) run(t *testing.T) (float64, rnic.Counters) {
	s := sim.New(l.seed)
	o := sim.DeviceOptions{
		Impair: l.impair,
		Link:   memory.Options{Rate: 10e9, Queue: 64 << 20, Delay: l.rtt / 2, RecvBuffer: 8 << 20},
	}
	a, b := newEnd(t, s, o), newEnd(t, s, o)
	options := verbs.ConnectOptions{MaxRdAtomic: 128, MaxDestRdAtomic: 128}
	require.NoError(t, s.Connect(sim.Endpoint{Device: a.dev, QP: a.qp, Options: options, Selective: true},
		sim.Endpoint{Device: b.dev, QP: b.qp, Options: options, Selective: true}))
	from, to := a, b
	if l.op == verbs.WRRDMARead {
		from, to = b, a
	}
	from.fill()
	posted := 0
	var ramp, end time.Duration
	var before, after int // messages complete then: several complete at once when a gap is closed
	take := a.dev.App
	a.dev.App = func() {
		take()
		if ramp == 0 && len(a.wcs) >= l.messages/3 {
			ramp, before = s.Now(), len(a.wcs)
		}
		if end == 0 && len(a.wcs) >= l.messages-l.ahead {
			end, after = s.Now(), len(a.wcs)
		}
		for posted < min(l.messages, len(a.wcs)+l.ahead) {
			_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: l.op, Flags: verbs.SendSignaled,
				SGList: []verbs.SGE{a.mr.SGE(0, regionSize)}, RKey: b.mr.RKey()}})
			require.NoError(t, err)
			posted++
		}
	}
	require.True(t, s.Run(func() bool { return len(a.wcs) == l.messages }), "%+v", l)
	for _, wc := range a.wcs {
		require.Equal(t, verbs.WCSuccess, wc.Status)
	}
	require.True(t, bytes.Equal(from.mr.Bytes(), to.mr.Bytes()))
	return float64(after-before) * regionSize * 8 / float64((end - ramp).Nanoseconds()), a.dev.Stats().Counters
}

// gigabits returns the goodput of the stream in Gbit/s.
func (l longStream) gigabits(t *testing.T) float64 {
	g, c := l.run(t)
	if *allGoodput {
		t.Logf("%v %v %s: %d packets, %d sent again, %d probes, %d timeouts", l.op, l.rtt, l.impair, c.SentPkts, c.Retransmitted, c.Probes, c.Timeouts)
	}
	return g
}

// TestSelectiveGoodput checks the part of the lossless goodput that remains with loss in both
// directions.
func TestSelectiveGoodput(t *testing.T) {
	type point struct {
		loss string
		part float64
	}
	short := []point{{"0.1%", .97}, {"1%", .93}, {"5%", .80}}
	for _, path := range []struct {
		rtt             time.Duration
		messages, ahead int
		points          []point
	}{
		{40 * time.Microsecond, 1000, 32, short},
		{time.Millisecond, 3000, 256, short},
		{10 * time.Millisecond, 15_000, 1600, []point{{"0.1%", .95}, {"1%", .90}, {"5%", .75}}},
	} {
		if *onlyRTT != 0 && path.rtt != *onlyRTT || testing.Short() && path.rtt > time.Millisecond {
			continue
		}
		for _, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead} {
			l := longStream{op: op, rtt: path.rtt, seed: 1, messages: path.messages, ahead: path.ahead, impair: "loss 0%"}
			lossless := l.gigabits(t)
			t.Logf("%v, round trip %v: %.2f Gbit/s", op, path.rtt, lossless)
			require.Greater(t, lossless, 9.0, "%+v", l)
			for _, p := range path.points {
				first, last := uint64(1), uint64(1)
				if *allGoodput {
					_, err := fmt.Sscanf(*goodputSeeds, "%d-%d", &first, &last)
					require.NoError(t, err)
				}
				sum, worst := 0.0, 1e9
				for seed := first; seed <= last; seed++ {
					l.seed, l.impair = seed, "loss "+p.loss
					g := l.gigabits(t) / lossless
					sum += g
					worst = min(worst, g)
				}
				mean := sum / float64(last-first+1)
				t.Logf("%v, round trip %v, loss %s: %.3f of it, the worst of seeds %d to %d %.3f (%.2f)", op, path.rtt, p.loss, mean, first, last, worst, p.part)
				if *allGoodput { // one seed is no mean
					require.Greater(t, mean, p.part, "%+v", l)
				}
				require.Greater(t, worst, 0.9*p.part, "%+v", l)
			}
		}
	}
}

// TestSelectiveReordering checks that reordering alone causes few retransmissions.
func TestSelectiveReordering(t *testing.T) {
	l := longStream{op: verbs.WRRDMAWrite, rtt: time.Millisecond, seed: 1, messages: 2000, ahead: 64, impair: "delay 200us reorder 5%"}
	_, c := l.run(t)
	t.Logf("%d of %d packets were sent again, %d probes, %d timeouts", c.Retransmitted, c.SentPkts, c.Probes, c.Timeouts)
	require.Less(t, float64(c.Retransmitted), 0.01*float64(c.SentPkts))
}
