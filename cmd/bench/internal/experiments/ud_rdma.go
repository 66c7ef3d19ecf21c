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
		{Name: "sizes", Kind: bench.Ints, Default: "64,512,1KiB,2KiB,4000,8KiB,16KiB,64KiB", Quick: "64,4000,64KiB", Min: 8, Max: 64 << 10, Check: bench.MultipleOf(8), Doc: "bytes of an operation, a multiple of 8; 4000 bytes fill one datagram of 4 KiB"},
		{Name: "modes", Kind: bench.Words, Default: "event,poll,cold,native,native-cold", Choices: []string{"event", "poll", "cold", "native", "native-cold"},
			Doc: "service at the target: a goroutine that sleeps until a solicited event, one that polls, the former with uncached memory, or the adapter itself"},
		{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
		{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "300", Doc: "operations in a round"},
		{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a bandwidth round"},
	}
	for _, e := range []struct {
		op             verbsbench.RDMOp
		rc             verbsbench.Op
		source, figure string
		claims         []bench.Statement
	}{
		{verbsbench.RDMRead, verbsbench.RCRead, "RCUD fig. 10", "ud-rdma-read", udReadClaims()},
		{verbsbench.RDMWrite, verbsbench.RCWrite, "RCUD fig. 11", "ud-rdma-write", udWriteClaims()},
	} {
		register(&bench.Experiment{
			Name: e.figure, Source: e.source, Layer: bench.LayerVerbs, Claims: e.claims,
			Axes:   []bench.Axis{{Name: "size", Unit: measure.Bytes}},
			Params: params,
			Run:    runFunc(func(ctx context.Context, r *run) error { return udRDMA(ctx, r, e.op, e.rc) }),
		})
	}
}

const (
	udOneMTU     = 4000 // bytes that fill one datagram of 4 KiB together with the headers of the emulation
	udMessages   = 64 << 10
	udReadSeries = "ud-read-event" // beside writes
)

// udOver returns the comparison of latencies of one MTU.
func udOver(of, over string, limit bench.Limit) bench.Comparison {
	return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: measure.Microseconds, At: bench.At(udOneMTU, measure.Bytes), Limit: limit}
}

// udCold returns the statement about memory out of the cache.
func udCold(cold, warm string) bench.Statement {
	return bench.Statement{
		Sentence: "With a target buffer out of the processor's cache, an operation of one MTU takes at least 1.1 times as long, and a stream has at most 0.9 times the bandwidth.",
		Paper:    "caching determines latency and bandwidth",
		Compare: bench.All{udOver(cold, warm, bench.AtLeast(1.1)), bench.Ratio{Of: []string{cold}, Over: []string{warm}, Unit: measure.MegabytesPerSec,
			At: bench.At(udOneMTU, measure.Bytes), Limit: bench.AtMost(0.9)}},
		Because: "a copy of one MTU from memory is short beside the packets in software",
	}
}

// udSlower returns the statement that emulated operations are slower than those over RC.
func udSlower(op string, emulated []string, rc verbsbench.Op) bench.Statement {
	over := func(unit string, limit bench.Limit) bench.Comparison {
		return bench.Ratio{Of: emulated, Over: []string{string(rc)}, Unit: unit, At: bench.Everywhere(measure.Bytes), Limit: limit}
	}
	return bench.Statement{
		Source:   "RCUD sec. 5.1.3",
		Sentence: fmt.Sprintf("An emulated %s takes longer than over RC, and a stream of them has less bandwidth, at each size.", op),
		Paper:    "compared to RC, the emulation performs poorly",
		Compare:  bench.All{over(measure.Microseconds, bench.AtLeast(1)), over(measure.MegabytesPerSec, bench.AtMost(1))},
	}
}

func udReadClaims() []bench.Statement {
	return []bench.Statement{
		{
			Sentence: "An RDMA read of one MTU emulated over UD, with a service that sleeps until an event, takes at least 3 times as long as over RC.",
			Paper:    "over 3 times RC", Number: 3,
			Compare: udOver("ud-read-event", string(verbsbench.RCRead), bench.AtLeast(3)),
			Because: "a read over RC is software here as well, and an event costs less beside it",
		},
		{
			Sentence: "The event costs 4 to 17 us compared with polling, which is the paper's cost within a factor of 2.",
			Paper:    "8 to 9 us",
			Compare: bench.Value{Of: []string{"ud-read-event"}, Minus: "ud-read-poll", Unit: measure.Microseconds, At: bench.At(udOneMTU, measure.Bytes),
				Limit: bench.Within(4, 17)},
			Because: "the sleeping service is woken by the scheduler, twice for a read",
		},
		udCold("ud-read-cold", "ud-read-event"),
		udSlower("read", []string{"ud-read-event", "ud-read-poll"}, verbsbench.RCRead),
		{
			Source:   bench.Adapter,
			Sentence: "A read that the adapters execute natively over UD takes at most 1.3 times as long as over RC.",
			Compare:  udOver("ud-read-native", string(verbsbench.RCRead), bench.AtMost(1.3)),
		},
	}
}

func udWriteClaims() []bench.Statement {
	return []bench.Statement{
		{
			Sentence: "An emulated write of one MTU, which the target copies when it polls, takes no longer than an emulated read with an event.",
			Paper:    "less costly, as there is no event",
			Compare:  udOver("ud-write-lazy", udReadSeries, bench.AtMost(1)),
		},
		udCold("ud-write-cold", "ud-write-lazy"),
		udSlower("write", []string{"ud-write-lazy"}, verbsbench.RCWrite),
		{
			Source:   bench.Adapter,
			Sentence: "Reliable messages over UD have at least 0.6 times the bandwidth of RC sends at 64 KiB.",
			Compare: bench.Ratio{Of: []string{"ud-messages"}, Over: []string{"rc-send"}, Unit: measure.MegabytesPerSec, At: bench.At(udMessages, measure.Bytes),
				Limit: bench.AtLeast(0.6)},
		},
	}
}

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
	if u.op == verbsbench.RDMWrite {
		read, err := u.pair.OpenRDM(ctx, verbsbench.RDMOptions{Op: verbsbench.RDMRead, Size: size, Service: rdm.ServeEvent})
		if err != nil {
			return fmt.Errorf("%s: %w", udReadSeries, err)
		}
		defer read.Close(ctx)
		set.addPing(udReadSeries, read, u.Int("iters"))
	}
	_, err = u.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	return err
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
	if u.op == verbsbench.RDMWrite && size == udMessages {
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
	_, err = u.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
	return err
}
