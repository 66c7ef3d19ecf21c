package experiments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/dcbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

// unitsPerMessage is the unit of how many units of work an SDP message carries.
const unitsPerMessage = "units per message"

// processorUnit is the unit of the processor time of all processes.
const processorUnit = "ms of processor time"

// paperSize is the first size of the data set that a run in the paper's number of processes is about.
const paperSize = 64 << 20

func init() {
	for _, a := range []struct {
		app          dcbench.App
		source, name string
		limit        float64 // run time over that with credit-based flow control
		nodes        int     // of the paper
	}{
		{dcbench.Microscope, "SDP fig. 10a", "the virtual microscope", 0.9, 13},
		{dcbench.Isosurface, "SDP fig. 10b", "iso-surface rendering", 0.8, 12},
	} {
		register(&bench.Experiment{
			Name:   "dc-" + string(a.app),
			Source: a.source,
			Layer:  bench.LayerDomain,
			Claims: dcClaims(a.name, a.limit, a.nodes),
			Axes:   []bench.Axis{{Name: "data-set size", Unit: measure.Bytes}},
			Params: dcParams(a.nodes),
			Run:    runFunc(func(ctx context.Context, r *run) error { return runApplication(ctx, r, a.app) }),
		})
	}
}

// inProcesses returns the unit of a figure in the given number of processes. Two, the default, are
// left out.
func inProcesses(unit string, processes int) string {
	if processes == 2 {
		return unit
	}
	return fmt.Sprintf("%s in %d processes", unit, processes)
}

// dcClaims returns the statements about an application. most is the limit of RDMA-based and
// NIC-assisted over credit-based flow control, and nodes the paper's number of nodes.
func dcClaims(name string, most float64, nodes int) []bench.Statement {
	nic, rdma, credit := string(sdpbench.NIC), string(sdpbench.RDMA), string(sdpbench.Credit)
	tcp := []string{string(sdpbench.TCP), string(dcbench.BufferedTCP)}
	over := func(of, over string, at bench.Points, most float64) bench.Comparison {
		return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: measure.Milliseconds, At: at, Limit: bench.AtMost(most)}
	}
	inNodes := func(unit string, of, over []string, from, most float64) bench.Comparison {
		return bench.Ratio{Of: of, Over: over, Unit: inProcesses(unit, nodes), At: bench.From(from, measure.Bytes), Limit: bench.AtMost(most)}
	}
	all := bench.Everywhere(measure.Bytes)
	paper := fmt.Sprintf("around %.0f %% better", 100*(1-most))
	return []bench.Statement{
		{
			Sentence: fmt.Sprintf("With units of 1 KB, %s takes at most %.1f times as long with NIC-assisted flow control as with credit-based, for any size of the data set.", name, most),
			Paper:    paper, Number: most,
			Compare: over(nic, credit, all, most),
		},
		{
			Sentence: "It does with RDMA-based flow control, too.",
			Paper:    paper, Number: most,
			Compare: over(rdma, credit, all, most),
		},
		{
			Sentence: "NIC-assisted and RDMA-based flow control differ by at most 10 %.",
			Paper:    "no major difference",
			Compare:  bench.Alike{Series: []string{nic, rdma}, Unit: measure.Milliseconds, At: all, Limit: bench.AtMost(1.1)},
		},
		{
			Sentence: fmt.Sprintf("In %d processes, the paper's number of nodes, and from 64 MB on it takes at most %.1f times as long with NIC-assisted and RDMA-based flow control as with credit-based.", nodes, most),
			Paper:    fmt.Sprintf("%s with up to 1 GB on %d nodes", paper, nodes), Number: most,
			Compare: inNodes(measure.Milliseconds, []string{nic, rdma}, []string{credit}, paperSize, most),
		},
		{
			Sentence: fmt.Sprintf("In %d processes and with the paper's data set of 1 GB it takes at most %.1f times as long with NIC-assisted flow control as with credit-based.", nodes, most),
			Paper:    fmt.Sprintf("%s with 1 GB on %d nodes", paper, nodes), Number: most,
			Compare: inNodes(measure.Milliseconds, []string{nic}, []string{credit}, 1<<30, most),
		},
		{
			Source:   bench.Adapter,
			Sentence: "With NIC-assisted flow control it takes no longer than over Go's TCP, without and with a buffered writer.",
			Compare:  bench.Ratio{Of: []string{nic}, Over: tcp, Unit: measure.Milliseconds, At: all, Limit: bench.AtMost(1)},
		},
		{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("In %d processes and from 64 MB on it takes no longer than over Go's TCP, without and with a buffered writer.", nodes),
			Compare:  inNodes(measure.Milliseconds, []string{nic}, tcp, paperSize, 1),
			Because:  "more processes than processors take turns, and the adapter in each takes more processor time than TCP in the kernel",
		},
		{
			Source:   bench.Adapter,
			Sentence: "With NIC-assisted flow control the processes take no more processor time than over Go's TCP, without and with a buffered writer.",
			Compare:  bench.Ratio{Of: []string{nic}, Over: tcp, Unit: processorUnit, At: all, Limit: bench.AtMost(1)},
		},
		{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("In %d processes and from 64 MB on they take no more processor time than over Go's TCP, without and with a buffered writer.", nodes),
			Compare:  inNodes(processorUnit, []string{nic}, tcp, paperSize, 1),
		},
	}
}

// dcParams returns the parameters of an application. The paper uses up to 1 GB on nodes nodes,
// which are processes here. With small sets in two processes, all of them find a processor.
func dcParams(nodes int) []bench.Param {
	return []bench.Param{
		{Name: "sizes", Kind: bench.Ints, Default: "2MiB,4MiB,8MiB,16MiB", Quick: "4MiB", Min: 16 << 10, Doc: "bytes of the data set; a size for which this machine has too little memory is left out"},
		{Name: "unit", Kind: bench.Int, Default: "1KiB", Min: 128, Max: 1 << 20, OfClaim: true, Doc: "maximum bytes of a unit"},
		{Name: "processes", Kind: bench.Int, Default: "2", Min: 2, Max: 13, Doc: "number of processes; neighbouring filters run in different ones"},
		{Name: "paper-sizes", Kind: bench.Ints, Default: "64MiB,1GiB", Quick: "4MiB", Min: 16 << 10, Doc: "bytes of the data set in the paper's number of processes"},
		{Name: "paper-processes", Kind: bench.Int, Default: strconv.Itoa(nodes), Min: 2, Max: 13, Doc: "number of processes, that of the paper's nodes"},
		{Name: "buffers", Kind: bench.Int, Default: "8", Max: 16384, OfClaim: true, Doc: "of SDP"},
		{Name: "bytes", Kind: bench.Int, Default: "8KiB", Min: 64, OfClaim: true, Doc: "of a buffer"},
		{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "3", Doc: "alternating runs at each point"},
	}
}

// runApplication measures run times over the size of the data set, in a few processes and in those
// of the paper.
func runApplication(ctx context.Context, r *run, app dcbench.App) error {
	small, large := r.Ints("sizes"), r.Ints("paper-sizes")
	r.Plan(2 + 2*(len(small)+len(large)))
	if err := runClusters(ctx, r, app, r.Int("processes"), small); err != nil {
		return err
	}
	return runClusters(ctx, r, app, r.Int("paper-processes"), large)
}

// runClusters measures run times in a number of processes over the size of the data set.
func runClusters(ctx context.Context, r *run, app dcbench.App, processes int, sizes []int) error {
	dir, err := dcbench.TempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.Step("starting %d processes", processes)
	all, err := openClusters(ctx, r, processes)
	defer all.close()
	if err != nil {
		return err
	}
	for _, size := range sizes {
		r.Step("a data set of %s in %d processes", formatBytes(size), processes)
		data, err := dcbench.NewDataSet(dir, app, int64(size), r.Int("unit"))
		if errors.Is(err, dcbench.ErrNoRoom) {
			all.emitAbsent(r, size, err)
			continue
		}
		if err != nil {
			return err
		}
		r.Step("runs with %s in %d processes", formatBytes(size), processes)
		if err := all.measureRuns(ctx, r, data, size, processes); err != nil {
			return err
		}
		if err := data.Remove(); err != nil {
			return err
		}
	}
	return nil
}

// emitAbsent emits the reason for which no target was measured with a size of the data set.
func (all clusters) emitAbsent(r *run, size int, reason error) {
	for _, c := range all {
		r.EmitAbsent(string(c.transport), "not reached: a data set of %s: %v", formatBytes(size), reason)
	}
}

// clusters are the targets to compare, TCP first.
type clusters []cluster

type cluster struct {
	transport sdpbench.Transport
	*dcbench.Cluster
}

// openClusters opens TCP, without and with a buffered writer, and the three flow control modes. The
// caller must close them, also after an error.
func openClusters(ctx context.Context, r *run, processes int) (all clusters, err error) {
	for _, over := range dcbench.Transports() {
		c, err := dcbench.Open(ctx, dcbench.Config{Transport: over, Processes: processes, Buffers: r.Int("buffers"), BufferBytes: r.Int("bytes")})
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

// measureRuns runs all clusters alternately on a data set.
func (all clusters) measureRuns(ctx context.Context, r *run, data *dcbench.DataSet, size, processes int) error {
	var set seriesSet
	packed := make([][]float64, len(all))    // units per message, by round; none with TCP
	processor := make([][]float64, len(all)) // processor time in ms, by round
	for i, c := range all {
		// The first run reads the data set into memory and grows buffers.
		if _, err := c.Run(ctx, data); err != nil {
			return err
		}
		set.addSeries(string(c.transport), c.Rounds(data, func(res dcbench.Result) {
			if res.Messages > 0 {
				packed[i] = append(packed[i], float64(res.Units)/float64(res.Messages))
			}
			if res.Processor > 0 {
				processor[i] = append(processor[i], measure.Micros(res.Processor)/1000)
			}
		}))
	}
	if _, err := r.measurePoint(ctx, &set, atSize(size, inProcesses(measure.Milliseconds, processes))); err != nil {
		return err
	}
	for i, c := range all {
		r.emitFigures(c.transport, atSize(size, inProcesses(processorUnit, processes)), processor[i])
		r.emitFigures(c.transport, atSize(size, inProcesses(unitsPerMessage, processes)), packed[i])
	}
	return nil
}

// emitFigures emits the median of the rounds of a transport, unless there are none.
func (r *run) emitFigures(over sdpbench.Transport, at bench.Point, rounds []float64) {
	if len(rounds) > 0 {
		stats := measure.Summarize(rounds)
		r.Emit(bench.Row{Series: string(over), X: at.X, XUnit: at.XUnit, Y: measure.Median(rounds), YUnit: at.YUnit, Rounds: rounds, Stats: &stats})
	}
}
