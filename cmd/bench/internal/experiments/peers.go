package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "peers",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claim: "An RC write has at least the bandwidth of the other installed implementations (Go's TCP, UCX, libfabric, a kernel RDMA device " +
			"such as rxe with perftest). A message of 8 bytes takes no longer than theirs, and at most 1.5 times as long as on the RDMA device.",
		Axes: []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "latency", Kind: bench.Ints, Default: "8,4KiB", Quick: "8", Doc: "message sizes for latency, at most 32 KiB"},
			{Name: "bandwidth", Kind: bench.Ints, Default: "64KiB,1MiB", Quick: "64KiB", Doc: "message sizes for bandwidth"},
			{Name: "beside", Kind: bench.Words, Default: "tcp,ucx,libfabric,rdma", Choices: []string{"tcp", "ucx", "libfabric", "rdma"}, Doc: "other implementations to run, if installed"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "2", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "200", Doc: "round trips in a round, or messages in a stream of another implementation"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a round of our own streams"},
		},
		Run: evaluated(comparePeers),
	})
}

// A comparison is a running experiment.
type comparison struct {
	*run
	pair   *verbsbench.Pair
	device string // the kernel's RDMA device, or ""
}

func comparePeers(ctx context.Context, r *run) error {
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	c := &comparison{run: r, pair: pair}
	if c.wantsPeer("rdma") {
		c.device, _ = peers.RDMADevice()
	}
	if err := r.measureSizes(ctx, c.measureLatency, c.measureBandwidth); err != nil {
		return err
	}
	if c.device == "" && c.wantsPeer("rdma") {
		c.addRemark("no kernel RDMA device with perftest here")
	}
	return nil
}

func (c *comparison) wantsPeer(name string) bool { return slices.Contains(c.Words("beside"), name) }

// A peerSeries is a series of another implementation, and the limit of our operation over it.
type peerSeries struct {
	series string
	limit  float64
	round  measure.Round
}

// measureLatency measures half round trips of one size.
func (c *comparison) measureLatency(ctx context.Context, size int) error {
	iters := c.Int("iters")
	set, end, err := newPingSet(ctx, c.pair, size, iters, verbsbench.RCWrite, verbsbench.RCSend)
	defer end()
	if err != nil {
		return err
	}
	return c.comparePoint(ctx, set, size, measure.Microseconds, c.atMost, peerRounds{
		rdmaLimit: 1.5, write: peers.IBWriteLat, send: peers.IBSendLat,
		tcp: func(ctx context.Context, s *peers.TCP) (float64, error) { return s.Latency(ctx, iters) },
		ucx: func(ctx context.Context) (float64, error) { return peers.UCXLatency(ctx, "tcp", size, iters) },
		fabric: func(ctx context.Context) (float64, error) {
			f, err := peers.FabricPingPong(ctx, peers.RXD, size, iters)
			return f.Micros, err
		},
	})
}

// measureBandwidth measures streams of one size. libfabric's program has one message in flight.
func (c *comparison) measureBandwidth(ctx context.Context, size int) error {
	iters := c.Int("iters")
	set, end, err := newStreamSet(ctx, c.pair, size, c.Duration("time"), verbsbench.RCWrite, verbsbench.RCSend)
	defer end()
	if err != nil {
		return err
	}
	return c.comparePoint(ctx, set, size, measure.MegabytesPerSec, c.atLeast, peerRounds{
		rdmaLimit: 1, write: peers.IBWriteBW, send: peers.IBSendBW,
		tcp: func(ctx context.Context, s *peers.TCP) (float64, error) { return s.Bandwidth(ctx, iters*size) },
		ucx: func(ctx context.Context) (float64, error) { return peers.UCXBandwidth(ctx, "tcp", size, iters) },
		fabric: func(ctx context.Context) (float64, error) {
			f, err := peers.FabricPingPong(ctx, peers.RXD, size, iters)
			return f.MBps, err
		},
	})
}

// peerRounds has the rounds of the other implementations at one point.
type peerRounds struct {
	rdmaLimit   float64 // limit of ours over the RDMA device's; 1 for all others
	write, send peers.Perftest
	tcp         func(context.Context, *peers.TCP) (float64, error)
	ucx, fabric measure.Round
}

// openPeers returns the series of the selected and installed implementations. The caller must
// call end.
func (c *comparison) openPeers(ctx context.Context, size int, how peerRounds) (list []peerSeries, end func(), err error) {
	end = func() {}
	if c.wantsPeer("tcp") {
		tcp, err := peers.OpenTCP(ctx, size)
		if err != nil {
			return nil, end, err
		}
		end = tcp.Close
		list = append(list, peerSeries{"tcp", 1, func(ctx context.Context) (float64, error) { return how.tcp(ctx, tcp) }})
	}
	if c.wantsPeer("ucx") && peers.HasUCX() {
		list = append(list, peerSeries{"ucx-tcp", 1, how.ucx})
	}
	if c.wantsPeer("libfabric") && peers.HasLibfabric() {
		list = append(list, peerSeries{peers.RXD, 1, how.fabric})
	}
	if c.device != "" {
		for i, program := range []peers.Perftest{how.write, how.send} {
			series := c.device + []string{"-rc-write", rdmaSend}[i]
			list = append(list, peerSeries{series, how.rdmaLimit, func(ctx context.Context) (float64, error) {
				return program.Run(ctx, c.device, size, c.Int("iters"))
			}})
		}
	}
	return list, end, nil
}

const rdmaSend = "-rc-send" // suffix of the RDMA device's series that is compared with our sends

// comparePoint measures all series at one size and compares our RC write, or RC send, with each
// of the others.
func (c *comparison) comparePoint(ctx context.Context, set seriesSet, size int, unit string,
	check func(desc string, ratio, limit float64), rounds peerRounds) error {
	others, end, err := c.openPeers(ctx, size, rounds)
	if err != nil {
		return err
	}
	defer end()
	first := len(set.samples)
	others = slices.DeleteFunc(others, func(r peerSeries) bool {
		_, err := r.round(ctx) // warms up, and detects implementations that do not work
		if err != nil && ctx.Err() == nil {
			c.addRemark("%s left out: %v", r.series, err)
		}
		return err != nil
	})
	for _, r := range others {
		set.addSeries(r.series, r.round)
	}
	samples, _, err := c.measurePoint(ctx, &set, atSize(size, unit))
	if err != nil {
		return err
	}
	for i, r := range others {
		mine := samples[1]
		if r.series == c.device+rdmaSend {
			mine = samples[2]
		}
		check(fmt.Sprintf("%s of %d B over %s", mine.Series, size, r.series), measure.MedianRatio(mine.Figures, samples[first+i].Figures), r.limit)
	}
	return nil
}
