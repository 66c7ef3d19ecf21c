package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/rdm"
)

func init() {
	params := []bench.Param{
		{Name: "sizes", Kind: bench.Ints, Default: "64,512,1KiB,2KiB,4000,8KiB,16KiB,64KiB", Quick: "64,4000,64KiB", Doc: "bytes of an operation, a multiple of 8; 4000 bytes fill one datagram of 4 KiB"},
		{Name: "modes", Kind: bench.Words, Default: "event,poll,cold,native,native-cold", Choices: []string{"event", "poll", "cold", "native", "native-cold"},
			Doc: "service at the target: a goroutine that sleeps until a solicited event, one that polls, the former with uncached memory, or the adapter itself"},
		{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
		{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "300", Doc: "operations in a round"},
		{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a bandwidth round"},
	}
	bench.Register(&bench.Experiment{
		Name: "ud-rdma-read", Source: "RCUD fig. 10", Layer: bench.LayerVerbs,
		Claim: "An RDMA read of one MTU emulated over UD, with a service that sleeps until an event, takes three times as long as over RC (the paper). " +
			"A read that the adapters execute natively over UD takes at most 1.3 times as long.",
		Axes:   []bench.Axis{{Name: "size", Unit: measure.Bytes}},
		Params: params,
		Run:    evaluated(func(ctx context.Context, r *run) error { return udRDMA(ctx, r, verbsbench.RDMRead, verbsbench.RCRead) }),
	})
	bench.Register(&bench.Experiment{
		Name: "ud-rdma-write", Source: "RCUD fig. 11", Layer: bench.LayerVerbs,
		Claim: "RDMA writes emulated over UD cost less than reads, because the target copies when it polls, without an event (the paper). " +
			"Reliable messages over UD have at least 0.6 times the bandwidth of RC sends at 64 KiB.",
		Axes:   []bench.Axis{{Name: "size", Unit: measure.Bytes}},
		Params: params,
		Run: evaluated(func(ctx context.Context, r *run) error {
			return udRDMA(ctx, r, verbsbench.RDMWrite, verbsbench.RCWrite)
		}),
	})
}

const (
	udOneMTU       = 4000 // bytes that fill one datagram of 4 KiB together with the headers of the emulation
	udPaperFactor  = 3.0  // emulated read over RC in the paper
	udNativeFactor = 1.3
	udMessages     = 64 << 10
	udMessageShare = 0.6 // over RC send
)

// udModes has the options of each mode.
var udModes = map[string]verbsbench.RDMOptions{
	"event":       {Service: rdm.ServeEvent},
	"poll":        {Poll: true},
	"cold":        {Service: rdm.ServeEvent, Cold: true},
	"native":      {Native: true},
	"native-cold": {Native: true, Cold: true},
}

// A udRun is a running experiment.
type udRun struct {
	*run
	pair *verbsbench.Pair
	op   verbsbench.RDMOp
	rc   verbsbench.Op
}

func udRDMA(ctx context.Context, r *run, op verbsbench.RDMOp, rc verbsbench.Op) error {
	sizes := r.Ints("sizes")
	r.Plan(2 * len(sizes))
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	u := &udRun{run: r, pair: pair, op: op, rc: rc}
	for _, size := range sizes {
		r.Step("latency of %d B", size)
		if err := u.measureLatency(ctx, size); err != nil {
			return err
		}
		r.Step("bandwidth of %d B", size)
		if err := u.measureBandwidth(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// rdmOptions returns the options of a mode. An emulated write is executed when the target
// polls, as in the paper.
func (u *udRun) rdmOptions(mode string, size int) verbsbench.RDMOptions {
	o := udModes[mode]
	o.Op, o.Size = u.op, size
	if u.op == verbsbench.RDMWrite && (mode == "event" || mode == "cold") {
		o.Service, o.Lazy = rdm.ServeCalls, true
	}
	return o
}

// seriesName returns the series of a mode.
func (u *udRun) seriesName(mode string) string {
	if u.op == verbsbench.RDMWrite && mode == "event" {
		mode = "lazy"
	}
	return fmt.Sprintf("ud-%s-%s", u.op, mode)
}

// measureLatency measures one size, with RC as the baseline.
func (u *udRun) measureLatency(ctx context.Context, size int) error {
	var set seriesSet
	rc, err := u.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: u.rc, Size: size})
	if err != nil {
		return err
	}
	defer rc.Close(ctx)
	set.addPing(string(u.rc), rc, u.Int("iters"))
	modes := u.Words("modes")
	for _, mode := range modes {
		s, err := u.pair.OpenRDM(ctx, u.rdmOptions(mode, size))
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		defer s.Close(ctx)
		set.addPing(u.seriesName(mode), s, u.Int("iters"))
	}
	_, ratios, err := u.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	if err != nil {
		return err
	}
	if size != udOneMTU {
		return nil
	}
	for i, mode := range modes {
		switch desc := fmt.Sprintf("%s of one MTU over RC's", u.seriesName(mode)); {
		case mode == "native":
			u.atMost(desc, ratios[i], udNativeFactor)
		case mode == "event" && u.op == verbsbench.RDMRead:
			u.addNote(true, "%s %.2f (the paper: %.0f)", desc, ratios[i], udPaperFactor)
		default:
			u.addNote(true, "%s %.2f", desc, ratios[i])
		}
	}
	return nil
}

// measureBandwidth measures many concurrent operations of one size, with RC as the baseline.
func (u *udRun) measureBandwidth(ctx context.Context, size int) error {
	var set seriesSet
	rc, err := u.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: u.rc, Size: size, Depth: 16})
	if err != nil {
		return err
	}
	defer rc.Close(ctx)
	set.addSeries(string(u.rc), rc.Rounds(u.Duration("time"), verbsbench.Flow.MBps))
	for _, mode := range u.Words("modes") {
		o := u.rdmOptions(mode, size)
		if o.Lazy { // the target does not poll during a stream
			o.Service, o.Lazy = rdm.ServeEvent, false
		}
		s, err := u.pair.OpenRDM(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		defer s.Close(ctx)
		set.addSeries(u.seriesName(mode), s.BandwidthRounds(u.Duration("time")))
	}
	compared := u.op == verbsbench.RDMWrite && size == udMessages
	if compared {
		send, err := u.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCSend, Size: size})
		if err != nil {
			return err
		}
		defer send.Close(ctx)
		set.addSeries("rc-send", send.Rounds(u.Duration("time"), verbsbench.Flow.MBps))
		s, err := u.pair.OpenRDM(ctx, verbsbench.RDMOptions{Op: verbsbench.RDMSend, Size: size})
		if err != nil {
			return err
		}
		defer s.Close(ctx)
		set.addSeries("ud-messages", s.BandwidthRounds(u.Duration("time")))
	}
	samples, _, err := u.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
	if err != nil {
		return err
	}
	if n := len(samples); compared {
		u.atLeast("bandwidth of reliable UD messages over RC send's", measure.MedianRatio(samples[n-1].Figures, samples[n-2].Figures), udMessageShare)
	}
	return nil
}
