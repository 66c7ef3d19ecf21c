package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
	"github.com/softrnic/softrnic/verbs/uverbs"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "beside-rxe",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: besideClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}, {Name: "queue pairs used round-robin", Unit: queuePairs}},
		Params: []bench.Param{
			{Name: "latency", Kind: bench.Ints, Default: "8,4KiB", Quick: "8", Max: maxPing, Doc: "message sizes for latency"},
			{Name: "qps", Kind: bench.Ints, Default: "1,16,64", Quick: "16", Max: 1024, Doc: "queue pairs used round-robin"},
			{Name: "device", Kind: bench.Words, Default: "rxe0", Doc: "name of the kernel's device"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "2", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "1000", Quick: "100", Doc: "round trips in a round"},
		},
		Run: runFunc(compareWithRxe),
	})
}

// besideOps are the operations of the comparison.
var besideOps = []verbsbench.Op{verbsbench.RCWrite, verbsbench.RCSend}

// besideSeries returns the name of a series: softrnic's are those of other experiments.
func besideSeries(device string, op verbsbench.Op) string {
	if device == "" {
		return string(op)
	}
	return "kernel-" + string(op)
}

func besideClaims() (claims []bench.Statement) {
	for _, op := range besideOps {
		of, over := []string{besideSeries("", op)}, []string{besideSeries("rxe0", op)}
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf("An %s takes at most 5 times as long on softrnic as on rxe between two queue pairs of one host, at each size.", op),
			Compare:  bench.Ratio{Of: of, Over: over, Unit: measure.Microseconds, At: bench.Everywhere(measure.Bytes), Limit: bench.AtMost(5)},
		})
	}
	return claims
}

// compareWithRxe runs the same code on softrnic and on a device of the kernel.
func compareWithRxe(ctx context.Context, r *run) error {
	c := &kernelComparison{run: r, pairs: map[string]*verbsbench.Pair{}}
	device := r.Words("device")[0]
	names, err := uverbs.Devices()
	if err != nil {
		return err
	}
	c.devices = []string{""}
	if slices.Contains(names, device) {
		c.devices = append(c.devices, device)
	} else {
		for _, op := range besideOps {
			r.EmitAbsent(besideSeries(device, op), "the kernel has no device %s (`rdma link add %s type rxe netdev eth0`)", device, device)
		}
	}
	for _, name := range c.devices {
		pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{NoSharedMemory: true, Device: name, MTU: 1024})
		if err != nil {
			return err
		}
		defer pair.Close()
		c.pairs[name] = pair
	}
	r.Plan(len(r.Ints("latency")) + len(r.Ints("qps")))
	for _, size := range r.Ints("latency") {
		r.Step("latency of %d B", size)
		if err := c.measurePings(ctx, size, 1, besideOps, atSize(size, measure.Microseconds)); err != nil {
			return err
		}
	}
	for _, n := range r.Ints("qps") {
		r.Step("%d queue pairs", n)
		at := bench.Point{X: float64(n), XUnit: queuePairs, YUnit: measure.Microseconds}
		if err := c.measurePings(ctx, smallSize, n, besideOps[:1], at); err != nil {
			return err
		}
	}
	return nil
}

// A kernelComparison has a pair of processes for each device.
type kernelComparison struct {
	*run
	devices []string // "" for softrnic, and the kernel's
	pairs   map[string]*verbsbench.Pair
}

// measurePings measures half round trips of one size over qps queue pairs.
func (c *kernelComparison) measurePings(ctx context.Context, size, qps int, ops []verbsbench.Op, at bench.Point) error {
	var set seriesSet
	for _, device := range c.devices {
		for _, op := range ops {
			ping, err := c.pairs[device].OpenPingPong(ctx, verbsbench.PingOptions{Op: op, Size: size, QPs: qps})
			if err != nil {
				return fmt.Errorf("%s: %w", besideSeries(device, op), err)
			}
			defer ping.Close(ctx)
			set.addPing(besideSeries(device, op), ping, c.Int("iters"))
		}
	}
	_, err := c.measurePoint(ctx, &set, at)
	return err
}
