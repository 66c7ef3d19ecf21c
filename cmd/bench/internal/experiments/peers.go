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
	register(&bench.Experiment{
		Name:   "peers",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: peerClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "latency", Kind: bench.Ints, Default: "8,4KiB", Quick: "8", Max: maxPing, Doc: "message sizes for latency"},
			{Name: "bandwidth", Kind: bench.Ints, Default: "64KiB,1MiB", Quick: "64KiB", Max: 4 << 20, Doc: "message sizes for bandwidth"},
			{Name: "beside", Kind: bench.Words, Default: "tcp,ucx,libfabric,rdma", Choices: []string{"tcp", "ucx", "libfabric", "rdma"}, Doc: "other implementations to run, if installed"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "2", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "2000", Quick: "200", Doc: "round trips in a round, or messages in a stream of another implementation"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "30ms", Doc: "length of a round of our own streams"},
		},
		Run: runFunc(comparePeers),
	})
}

// Series of the other implementations.
const (
	peerTCP   = "tcp"
	peerUCX   = "ucx-tcp"
	peerWrite = "perftest-rc-write"
	peerSend  = "perftest-rc-send" // compared with our sends
)

// Debian packages of the other implementations.
const (
	ucxPackage       = "Debian: ucx-utils"
	libfabricPackage = "Debian: libfabric-bin"
	perftestPackages = "Debian: perftest, rdma-core; a device by `rdma link add rxe0 type rxe netdev eth0`"
)

func peerClaims() (claims []bench.Statement) {
	write, send := string(verbsbench.RCWrite), string(verbsbench.RCSend)
	for _, c := range []struct {
		name, of, over string
		most           float64
	}{
		{"Go's TCP", write, peerTCP, 1},
		{"UCX over TCP", write, peerUCX, 1},
		{"libfabric's udp;ofi_rxd", write, peers.RXD, 1},
		{"perftest on a kernel RDMA device such as rxe", write, peerWrite, 1.5},
		{"perftest on a kernel RDMA device such as rxe", send, peerSend, 1.5},
	} {
		claims = append(claims,
			bench.Statement{
				Sentence: fmt.Sprintf("An %s takes at most %g times as long as with %s, at each size.", c.of, c.most, c.name),
				Compare: bench.Ratio{Of: []string{c.of}, Over: []string{c.over}, Unit: measure.Microseconds, At: bench.Everywhere(measure.Bytes),
					Limit: bench.AtMost(c.most)},
			},
			bench.Statement{
				Sentence: fmt.Sprintf("A stream of %s has at least the bandwidth of %s.", c.of, c.name),
				Compare: bench.Ratio{Of: []string{c.of}, Over: []string{c.over}, Unit: measure.MegabytesPerSec, At: bench.Everywhere(measure.Bytes),
					Limit: bench.AtLeast(1)},
			})
	}
	return claims
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
	c.emitAbsent("tcp", true, "", peerTCP)
	c.emitAbsent("ucx", peers.HasUCX(), ucxPackage, peerUCX)
	c.emitAbsent("libfabric", peers.HasLibfabric(), libfabricPackage, peers.RXD)
	c.emitAbsent("rdma", c.device != "", perftestPackages, peerWrite, peerSend)
	return r.measureSizes(ctx, c.measureLatency, c.measureBandwidth)
}

// emitAbsent emits the reason if a peer is not selected or not installed, for each of its series.
func (c *comparison) emitAbsent(peer string, installed bool, packages string, series ...string) {
	for _, s := range series {
		switch {
		case !c.wantsPeer(peer):
			c.EmitAbsent(s, "not selected (--set beside=%s)", peer)
		case !installed:
			c.EmitAbsent(s, "not installed here (%s)", packages)
		}
	}
}

func (c *comparison) wantsPeer(name string) bool { return slices.Contains(c.Words("beside"), name) }

// A peerSeries is a series of another implementation.
type peerSeries struct {
	series   string
	packages string // Debian packages that have it
	round    measure.Round
}

// measureLatency measures half round trips of one size.
func (c *comparison) measureLatency(ctx context.Context, size int) error {
	iters := c.Int("iters")
	set, end, err := newPingSet(ctx, c.pair, size, iters, verbsbench.RCWrite, verbsbench.RCSend)
	defer end()
	if err != nil {
		return err
	}
	return c.comparePoint(ctx, set, size, measure.Microseconds, peerRounds{
		write: peers.IBWriteLat, send: peers.IBSendLat,
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
	return c.comparePoint(ctx, set, size, measure.MegabytesPerSec, peerRounds{
		write: peers.IBWriteBW, send: peers.IBSendBW,
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
		list = append(list, peerSeries{peerTCP, "", func(ctx context.Context) (float64, error) { return how.tcp(ctx, tcp) }})
	}
	if c.wantsPeer("ucx") && peers.HasUCX() {
		list = append(list, peerSeries{peerUCX, ucxPackage, how.ucx})
	}
	if c.wantsPeer("libfabric") && peers.HasLibfabric() {
		list = append(list, peerSeries{peers.RXD, libfabricPackage, how.fabric})
	}
	if c.device != "" {
		for i, program := range []peers.Perftest{how.write, how.send} {
			list = append(list, peerSeries{[]string{peerWrite, peerSend}[i], perftestPackages, func(ctx context.Context) (float64, error) {
				return program.Run(ctx, c.device, size, c.Int("iters"))
			}})
		}
	}
	return list, end, nil
}

// comparePoint measures all series at one size.
func (c *comparison) comparePoint(ctx context.Context, set seriesSet, size int, unit string, rounds peerRounds) error {
	others, end, err := c.openPeers(ctx, size, rounds)
	if err != nil {
		return err
	}
	defer end()
	for _, r := range others {
		_, err := r.round(ctx) // warms up, and detects implementations that do not work
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			c.EmitAbsent(r.series, "fails with %s (%s): %v", formatBytes(size), r.packages, err)
		default:
			set.addOpponent(r.series, r.packages, r.round)
		}
	}
	_, err = c.measurePoint(ctx, &set, atSize(size, unit))
	return err
}
