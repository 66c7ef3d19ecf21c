package experiments

import (
	"context"
	"fmt"
	"os"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/dcbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

// Units of the applications' figures.
const (
	milliseconds    = "ms"                // from the first unit to the end of the last work
	unitsPerMessage = "units per message" // of SDP
)

const sameDesigns = 1.1 // limit: the slower of RDMA-based and NIC-assisted over the other

func init() {
	for _, a := range []struct {
		app          dcbench.App
		source, name string
		limit        float64 // limit: run time over that with credit-based flow control
	}{
		{dcbench.Microscope, "SDP fig. 10a", "the virtual microscope", 0.9},
		{dcbench.Isosurface, "SDP fig. 10b", "iso-surface rendering", 0.8},
	} {
		bench.Register(&bench.Experiment{
			Name:   "dc-" + string(a.app),
			Source: a.source,
			Layer:  bench.LayerDomain,
			Claim: fmt.Sprintf("With units of 1 KB, %s takes at least %.0f %% less time with RDMA-based and NIC-assisted flow control than with credit-based, "+
				"for any size of the data set, and these two differ by at most 10 %%.", a.name, 100*(1-a.limit)),
			Axes:   []bench.Axis{{Name: "data-set size", Unit: measure.Bytes}},
			Params: dcParams(),
			Run:    evaluated(func(ctx context.Context, r *run) error { return runApplication(ctx, r, a.app, a.limit) }),
		})
	}
}

// dcParams returns the parameters of both applications. The defaults are the paper's, except
// for the sizes: the paper uses up to 1 GB on 13 nodes.
func dcParams() []bench.Param {
	return []bench.Param{
		{Name: "sizes", Kind: bench.Ints, Default: "2MiB,4MiB,8MiB,16MiB", Quick: "4MiB", Min: 16 << 10, Doc: "bytes of the data set"},
		{Name: "unit", Kind: bench.Int, Default: "1KiB", Min: 128, Max: 1 << 20, Doc: "maximum bytes of a unit"},
		{Name: "processes", Kind: bench.Int, Default: "2", Min: 2, Max: 13, Doc: "number of processes; neighbouring filters run in different ones"},
		{Name: "buffers", Kind: bench.Int, Default: "8", Max: 16384, Doc: "of SDP"},
		{Name: "bytes", Kind: bench.Int, Default: "8KiB", Min: 64, Doc: "of a buffer"},
		{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating runs at each point"},
	}
}

// runApplication measures run times over the size of the data set. limit is that of RDMA-based
// and NIC-assisted over credit-based flow control.
func runApplication(ctx context.Context, r *run, app dcbench.App, limit float64) error {
	sizes := r.Ints("sizes")
	r.Plan(1 + 2*len(sizes))
	dir, err := dcbench.TempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.Step("starting processes")
	all, err := openClusters(ctx, r)
	defer all.close()
	if err != nil {
		return err
	}
	v := appRun{run: r, limit: limit}
	for _, size := range sizes {
		r.Step("a data set of %s", formatKiB(size))
		data, err := dcbench.NewDataSet(dir, app, int64(size), r.Int("unit"))
		if err != nil {
			return err
		}
		r.Step("runs with %s", formatKiB(size))
		samples, err := all.measureRuns(ctx, r, data, size)
		if err != nil {
			return err
		}
		if err := data.Remove(); err != nil {
			return err
		}
		v.addSize(size, samples[sdpbench.NIC], samples[sdpbench.RDMA], samples[sdpbench.Credit])
	}
	v.compareModes()
	return nil
}

// formatKiB formats a size in MiB or KiB.
func formatKiB(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.4g KiB", float64(bytes)/1024)
}

// clusters are the targets to compare, TCP first.
type clusters []cluster

type cluster struct {
	transport sdpbench.Transport
	*dcbench.Cluster
}

// openClusters opens TCP and the three flow control modes. The caller must close them, also
// after an error.
func openClusters(ctx context.Context, r *run) (all clusters, err error) {
	for _, over := range append([]sdpbench.Transport{sdpbench.TCP}, sdpbench.FlowControls()...) {
		c, err := dcbench.Open(ctx, dcbench.Config{Transport: over, Processes: r.Int("processes"), Buffers: r.Int("buffers"), BufferBytes: r.Int("bytes")})
		if err != nil {
			return all, fmt.Errorf("%s: %w", over, err)
		}
		all = append(all, cluster{over, c})
	}
	return all, nil
}

func (all clusters) close() {
	for _, c := range all {
		c.Close()
	}
}

// measureRuns runs all clusters alternately on a data set, and returns the times.
func (all clusters) measureRuns(ctx context.Context, r *run, data *dcbench.DataSet, size int) (map[sdpbench.Transport][]float64, error) {
	var set seriesSet
	packed := make([][]float64, len(all)) // units per message, by round
	for i, c := range all {
		// The first run reads the data set into memory and grows buffers.
		if _, err := c.Run(ctx, data); err != nil {
			return nil, err
		}
		set.addSeries(string(c.transport), c.Rounds(data, func(res dcbench.Result) {
			packed[i] = append(packed[i], float64(res.Units)/float64(max(res.Messages, 1)))
		}))
	}
	at := atSize(size, milliseconds)
	samples, _, err := r.measurePoint(ctx, &set, at)
	if err != nil {
		return nil, err
	}
	times := make(map[sdpbench.Transport][]float64)
	for i, c := range all {
		times[c.transport] = samples[i].Figures
		if c.transport != sdpbench.TCP {
			stats := measure.Summarize(packed[i])
			r.Emit(bench.Row{Series: string(c.transport), X: at.X, XUnit: at.XUnit, Y: measure.Median(packed[i]), YUnit: unitsPerMessage, Stats: &stats})
		}
	}
	return times, nil
}

// An appRun compares the flow control modes at each size.
type appRun struct {
	*run
	limit             float64 // of RDMA-based and NIC-assisted over credit-based
	nic, rdma         extreme // over credit-based
	largerOverSmaller extreme // the slower of the two over the other
}

func (v *appRun) addSize(size int, nic, rdma, credit []float64) {
	v.nic.keepMax(measure.MedianRatio(nic, credit), "with %s", formatKiB(size))
	v.rdma.keepMax(measure.MedianRatio(rdma, credit), "with %s", formatKiB(size))
	v.largerOverSmaller.keepMax(largerOverSmaller(nic, rdma), "with %s", formatKiB(size))
}

// compareModes checks the largest ratios of all sizes.
func (v *appRun) compareModes() {
	for _, d := range []struct {
		over sdpbench.Transport
		most extreme
	}{{sdpbench.NIC, v.nic}, {sdpbench.RDMA, v.rdma}} {
		v.atMost(fmt.Sprintf("%s over %s at worst %s", d.over, sdpbench.Credit, d.most.where), d.most.value, v.limit)
	}
	v.atMost(fmt.Sprintf("the slower of %s and %s over the other at worst %s", sdpbench.NIC, sdpbench.RDMA, v.largerOverSmaller.where), v.largerOverSmaller.value, sameDesigns)
}
