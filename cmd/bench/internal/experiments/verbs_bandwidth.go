package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	ops := []string{"rc-write", "rc-send", "rc-read", "uc-write", "ud-send"}
	bench.Register(&bench.Experiment{
		Name:   "verbs-bandwidth",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claim: "Messages of 64 KiB and more have at least these fractions of the bandwidth of UDP with packets of the same size: " +
			"0.80 for RC write, 0.70 for RC send and read; 0.70 for all three with MTU 1024; 0.60 with the default socket buffer.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "sizes", Kind: bench.Ints, Default: "1,64,1KiB,4KiB,16KiB,64KiB,1MiB", Quick: "64KiB", Doc: "bytes of a message"},
			{Name: "series", Kind: bench.Words, Default: "rc-write,rc-send,rc-read,uc-write,ud-send", Choices: ops, Doc: "operations"},
			{Name: "links", Kind: bench.Words, Default: "mtu-4096,mtu-1024,default-buffer", Choices: []string{"mtu-4096", "mtu-1024", "default-buffer"},
				Doc: "path MTU with a large socket buffer, or MTU 4096 with the system's default buffer"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a round"},
		},
		Run: verbsBandwidth,
	})
}

// A bandwidthLink is a configuration of the two devices, and the limits of RC with long
// messages.
type bandwidthLink struct {
	suffix      string // suffix of the series
	mtu         int
	config      verbsbench.Config
	base        udpraw.BandwidthOptions
	write, rest float64 // limits of rc-write, and of rc-send and rc-read
}

const longMessage = 64 << 10

func newBandwidthLink(name string) bandwidthLink {
	l := bandwidthLink{mtu: 4096, base: udpraw.BandwidthOptions{RecvBuffer: largeBuffer}, write: 0.80, rest: 0.70}
	switch name {
	case "mtu-1024":
		l.suffix, l.mtu, l.write = "-mtu1024", 1024, 0.70
	case "default-buffer":
		l.suffix, l.config.RecvBuffer, l.base.RecvBuffer = "-default-buffer", -1, 0
		l.write, l.rest = 0.60, 0.60
	}
	l.config.MTU = l.mtu
	l.base.Offload = udpraw.HasOffload()
	return l
}

func (l bandwidthLink) targetRatio(op verbsbench.Op) float64 {
	switch op {
	case verbsbench.RCWrite:
		return l.write
	case verbsbench.RCSend, verbsbench.RCRead:
		return l.rest
	}
	return 0
}

func verbsBandwidth(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	links, sizes := r.Words("links"), r.Ints("sizes")
	r.Plan(len(links) * len(sizes))
	var j evaluation
	for _, name := range links {
		if err := bandwidthOver(ctx, r, newBandwidthLink(name), &j); err != nil {
			return bench.Verdict{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return j.makeVerdict(), nil
}

// bandwidthOver measures every size over one link.
func bandwidthOver(ctx context.Context, r *bench.Run, l bandwidthLink, j *evaluation) error {
	pair, err := verbsbench.OpenPair(ctx, l.config)
	if err != nil {
		return err
	}
	defer pair.Close()
	bases := map[int]*udpraw.Bandwidth{} // by payload of a packet
	worst := map[verbsbench.Op]float64{} // smallest ratio of long messages
	for _, size := range r.Ints("sizes") {
		r.Step("%d B%s", size, l.suffix)
		payload := min(size, l.mtu)
		base, open := bases[payload]
		if !open {
			o := l.base
			o.Payload = payload
			if base, err = udpraw.OpenBandwidth(ctx, o); err != nil {
				return err
			}
			defer base.Close()
			bases[payload] = base
		}
		ratios, err := bandwidthPoint(ctx, r, l, pair, base, size)
		if err != nil {
			return err
		}
		for op, ratio := range ratios {
			if known, ok := worst[op]; size >= longMessage && (!ok || ratio < known) {
				worst[op] = ratio
			}
		}
	}
	for _, op := range verbsbench.ParseOps(r.Words("series")) {
		if ratio, ok := worst[op]; ok && l.targetRatio(op) > 0 {
			j.atLeast(string(op)+l.suffix+" over udp", ratio, l.targetRatio(op))
		}
	}
	return nil
}

// bandwidthPoint measures every operation at one size, with UDP as the baseline, and returns
// the ratios. The losses of UC and UD are emitted as separate rows.
func bandwidthPoint(ctx context.Context, r *bench.Run, l bandwidthLink, pair *verbsbench.Pair, base *udpraw.Bandwidth, size int) (map[verbsbench.Op]float64, error) {
	var set seriesSet
	ops := verbsbench.ParseOps(r.Words("series"))
	streams := make([]*verbsbench.Stream, len(ops))
	set.addSeries("udp"+l.suffix, base.Rounds(r.Duration("time"), udpraw.Flow.MBps))
	for i, op := range ops {
		s, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: op, Size: size})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		defer s.Close(ctx)
		streams[i] = s
		set.addSeries(string(op)+l.suffix, s.Rounds(r.Duration("time"), verbsbench.Flow.MBps))
	}
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return nil, err
	}
	at := bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: measure.MegabytesPerSec}
	ratios := map[verbsbench.Op]float64{}
	for i, ratio := range r.EmitAgainst(at, samples[0], samples[1:]...) {
		ratios[ops[i]] = ratio
		if lost := streams[i].LostPercent(); lost > 0 {
			r.Emit(bench.Row{Series: samples[1+i].Series, X: at.X, XUnit: at.XUnit, Y: lost, YUnit: "% lost"})
		}
	}
	return ratios, nil
}
