package experiments

import (
	"context"
	"runtime"
	"slices"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	register(&bench.Experiment{
		Name:   "acp-memory",
		Source: "ACP tables I, II, III",
		Layer:  bench.LayerACP,
		Claims: acpMemoryClaims(),
		Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}, {Name: "slot size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "1000,100000,1000000", Quick: "1000,1000000", Max: 1 << 20, Doc: "ranks of the job"},
			{Name: "processes", Kind: bench.Ints, Default: "2,8,32", Quick: "2,8", Min: 2, Max: 128, Doc: "ranks of a job whose ranks connect to all others"},
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "4KiB,64KiB", Max: 4 << 20, Doc: "bytes of a slot"},
			{Name: "slots", Kind: bench.Ints, Default: "2,4,8", Max: 64, Doc: "slots of one side"},
			{Name: "rounds", Kind: bench.Int, Default: "3", Quick: "1", Doc: "jobs that measure a channel, one after the other"},
		},
		Run: runFunc(acpMemory),
	})
}

const (
	basicLayer   = "basic-layer"
	eachRank     = "basic-layer-each-rank"
	constantPart = "basic-layer-constant"
	eachRankUnit = "B per rank"

	rankIdle      = "rank-idle"
	rankConnected = "rank-connected"
	eachConnected = "rank-connected-each-rank"
)

func acpMemoryClaims() []bench.Statement {
	return append([]bench.Statement{
		{
			Source:   "ACP table I",
			Sentence: "A rank takes at most 176 bytes for each other rank, before they connect.",
			Paper:    "176 bytes a process", Number: 176,
			Compare: bench.Value{Of: []string{eachRank}, Unit: eachRankUnit, At: bench.Everywhere(ranksUnit), Limit: bench.AtMost(176)}, Exact: true,
		},
		{
			Source:   "ACP table I",
			Sentence: "The constant part is at most 2 MB, without the adapter.",
			Paper:    "2 MB", Number: 2 << 20,
			Compare: bench.Value{Of: []string{constantPart}, Unit: measure.Bytes, At: bench.Everywhere(ranksUnit), Limit: bench.AtMost(2 << 20)}, Exact: true,
		},
		{
			Source:   "ACP table I",
			Sentence: "In a job of a million ranks the basic layer of each takes at most 178 MB, before they connect.",
			Paper:    "178 MB for 1 million processes", Number: 178e6,
			Compare: bench.Value{Of: []string{basicLayer}, Unit: measure.Bytes, At: bench.At(1e6, ranksUnit), Limit: bench.AtMost(178e6)}, Exact: true,
		},
		{
			Source:   "ACP table I",
			Sentence: "The live heap of a rank has at most 176 bytes for each rank that it is connected with, queue pairs included.",
			Paper:    "176 bytes a process",
			Compare:  bench.Value{Of: []string{eachConnected}, Unit: eachRankUnit, At: bench.Everywhere(ranksUnit), Limit: bench.AtMost(176)},
			Because:  "each rank has a connection of its own for its operations on another, so that a rank has two queue pairs, and two connections of the connection manager, for each other one",
		},
		{
			Source:   "ACP table I",
			Sentence: "Before it connects, the live heap of a rank grows by at most 2 MB, adapter included.",
			Paper:    "2 MB",
			Compare:  bench.Value{Of: []string{rankIdle}, Unit: measure.Bytes, At: bench.Everywhere(ranksUnit), Limit: bench.AtMost(2 << 20)},
			Because:  "the buffers of an adapter in software are memory of the process",
		},
	}, acpChannelMemoryClaims()...)
}

func acpMemory(ctx context.Context, r *run) error {
	counts := slices.Sorted(slices.Values(r.Ints("ranks")))
	processes := slices.Sorted(slices.Values(r.Ints("processes")))
	r.Plan(len(counts) + len(processes) + len(r.Ints("slot-sizes")))
	var sizes []float64
	for _, n := range counts {
		r.Step("%d ranks", n)
		bytes, err := rankMemory(n)
		if err != nil {
			return err
		}
		sizes = append(sizes, bytes)
		r.Emit(bench.Row{Series: basicLayer, X: float64(n), XUnit: ranksUnit, Y: bytes, YUnit: measure.Bytes})
	}
	if last := len(counts) - 1; counts[last] > counts[0] {
		each := (sizes[last] - sizes[0]) / float64(counts[last]-counts[0])
		row := bench.Row{Series: eachRank, X: float64(counts[last]), XUnit: ranksUnit, Y: each, YUnit: eachRankUnit}
		r.Emit(row)
		row.Series, row.Y, row.YUnit = constantPart, sizes[0]-each*float64(counts[0]), measure.Bytes
		r.Emit(row)
	}
	if err := connectedMemory(ctx, r, processes); err != nil {
		return err
	}
	return channelMemory(ctx, r)
}

// connectedMemory emits the memory of the processes of jobs with the given numbers of ranks, before
// and after all ranks have connected to each other.
func connectedMemory(ctx context.Context, r *run, counts []int) error {
	var sizes []float64
	for _, n := range counts {
		r.Step("%d processes", n)
		m, err := rankProcessMemory(ctx, n)
		if err != nil {
			return err
		}
		sizes = append(sizes, m.Connected)
		row := bench.Row{Series: rankIdle, X: float64(n), XUnit: ranksUnit, Y: m.Idle, YUnit: measure.Bytes}
		r.Emit(row)
		row.Series, row.Y = rankConnected, m.Connected
		r.Emit(row)
	}
	if last := len(counts) - 1; counts[last] > counts[0] {
		each := (sizes[last] - sizes[0]) / float64(counts[last]-counts[0])
		r.Emit(bench.Row{Series: eachConnected, X: float64(counts[last]), XUnit: ranksUnit, Y: each, YUnit: eachRankUnit})
	}
	return nil
}

func rankProcessMemory(ctx context.Context, ranks int) (acpbench.RankMemory, error) {
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: ranks})
	if err != nil {
		return acpbench.RankMemory{}, err
	}
	defer job.Close()
	return job.RankMemory(ctx)
}

// A soleRankManager is the process manager of one rank of a large job whose other ranks do not
// exist.
type soleRankManager struct {
	pmi.Manager
	size int
}

func (a soleRankManager) Size() int                 { return a.size }
func (soleRankManager) Fence(context.Context) error { return nil }

// rankMemory returns the heap memory that a rank of a job of n ranks takes, in bytes, without
// that of the adapter.
func rankMemory(n int) (float64, error) {
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	before := heapInUse()
	p, err := acp.Init(func() (verbs.Device, error) { return dev, nil }, acp.Options{Manager: soleRankManager{pmi.NewLocal(1)[0], n}})
	if err != nil {
		return 0, err
	}
	bytes := float64(heapInUse() - before)
	return bytes, p.Close()
}

// heapInUse returns the bytes in use on the heap.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees objects released by the first collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
