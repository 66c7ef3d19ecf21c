package experiments

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "acp-memory",
		Source: "ACP tables I, II, III",
		Layer:  bench.LayerACP,
		Claims: acpMemoryClaims(),
		Axes:   []bench.Axis{{Name: "ranks", Unit: ranksUnit}, {Name: "slot size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "1000,100000,1000000", Quick: "1000,1000000", Max: 1 << 20, Doc: "ranks of the job"},
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "4KiB,64KiB", Max: 4 << 20, Doc: "bytes of a slot"},
			{Name: "slots", Kind: bench.Ints, Default: "2,4,8", Max: 64, Doc: "slots of one side"},
		},
		Run: runFunc(acpMemory),
	})
}

// Formulas of the paper, in bytes.
const (
	paperSender  = 168
	paperSlot    = 16
	paperReceive = 160
)

const (
	basicLayer   = "basic-layer"
	eachRank     = "basic-layer-each-rank"
	constantPart = "basic-layer-constant"
	eachRankUnit = "B per rank"
	overFormula  = "B over the formula" // unit
)

func acpMemoryClaims() []bench.Statement {
	claims := []bench.Statement{
		{
			Source:   "ACP table I",
			Sentence: "A rank takes at most 176 bytes for each other rank.",
			Paper:    "176 bytes a process", Number: 176,
			Compare: bench.Value{Of: []string{eachRank}, Unit: eachRankUnit, At: bench.Everywhere(ranksUnit), Limit: bench.AtMost(176)}, Exact: true,
		},
		{
			Source:   "ACP table I",
			Sentence: "The constant part is at most 2 MB.",
			Paper:    "2 MB", Number: 2 << 20,
			Compare: bench.Value{Of: []string{constantPart}, Unit: measure.Bytes, At: bench.Everywhere(ranksUnit), Limit: bench.AtMost(2 << 20)}, Exact: true,
		},
		{
			Source:   "ACP table I",
			Sentence: "In a job of a million ranks the basic layer of each takes at most 178 MB.",
			Paper:    "178 MB for 1 million processes", Number: 178e6,
			Compare: bench.Value{Of: []string{basicLayer}, Unit: measure.Bytes, At: bench.At(1e6, ranksUnit), Limit: bench.AtMost(178e6)}, Exact: true,
		},
	}
	for _, c := range []struct{ role, source, formula string }{
		{"sender", "ACP table II", "168 + 16 n + n s bytes"},
		{"receiver", "ACP table III", "160 + n s bytes"},
	} {
		var of []string
		for _, n := range []int{2, 4, 8} {
			of = append(of, channelSide(c.role, n))
		}
		claims = append(claims, bench.Statement{
			Source:   c.source,
			Sentence: fmt.Sprintf("The %s of a channel takes at most %s, with n slots of s bytes.", c.role, c.formula),
			Paper:    c.formula,
			Compare:  bench.Value{Of: of, Unit: overFormula, At: bench.Everywhere(measure.Bytes), Limit: bench.AtMost(0)}, Exact: true,
		})
	}
	return claims
}

// channelSide returns the series of one side of a channel.
func channelSide(role string, slots int) string { return fmt.Sprintf("%s-%d-slots", role, slots) }

func acpMemory(ctx context.Context, r *run) error {
	counts := slices.Sorted(slices.Values(r.Ints("ranks")))
	r.Plan(len(counts) + len(r.Ints("slot-sizes")))
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
	return channelMemory(r)
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

// channelMemory emits the memory of both sides of channels: the bytes that they request from
// the allocator, and the growth of the heap including the adapter's part.
func channelMemory(r *run) error {
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		return err
	}
	p, err := acp.Init(func() (verbs.Device, error) { return dev, nil }, acp.Options{Manager: pmi.NewLocal(1)[0]})
	if err != nil {
		return err
	}
	defer p.Close()
	for _, size := range r.Ints("slot-sizes") {
		r.Step("slots of %s", sizeName(size))
		for _, n := range r.Ints("slots") {
			for i, formula := range []int{paperReceive + n*size, paperSender + paperSlot*n + n*size} {
				before := heapInUse()
				ch, err := p.NewChannel(0, 0, acp.ChannelOptions{SlotSize: size, Slots: n}) // the receiving end first
				if err != nil {
					return err
				}
				all := float64(heapInUse() - before)
				role := []string{"receiver", "sender"}[i]
				row := bench.Row{Series: channelSide(role, n), X: float64(size), XUnit: measure.Bytes, Y: float64(ch.Memory()), YUnit: measure.Bytes}
				r.Emit(row)
				heap := row
				heap.Series, heap.Y = row.Series+"-heap", all
				r.Emit(heap)
				row.Y, row.YUnit = float64(ch.Memory()-formula), overFormula
				r.Emit(row)
			}
		}
	}
	return nil
}
