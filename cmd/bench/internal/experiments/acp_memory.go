package experiments

import (
	"context"
	"fmt"
	"runtime"

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
		Claim: "A rank takes at most 176 bytes for each other rank, plus at most 2 MB. The sides of a channel take at most " +
			"168 + 16 n + n s bytes (sender) and 160 + n s bytes (receiver), with n slots of s bytes.",
		Axes: []bench.Axis{{Name: "ranks", Unit: ranksUnit}, {Name: "slot size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Ints, Default: "1000,100000,1000000", Quick: "1000,1000000", Max: 1 << 20, Doc: "ranks of the job"},
			{Name: "slot-sizes", Kind: bench.Ints, Default: "4KiB,16KiB,64KiB,256KiB,1MiB", Quick: "4KiB,64KiB", Doc: "bytes of a slot"},
			{Name: "slots", Kind: bench.Ints, Default: "2,4,8", Doc: "slots of one side"},
		},
		Run: evaluated(acpMemory),
	})
}

// Limits of the paper.
const (
	paperRank    = 176     // bytes for each other rank
	paperConst   = 2 << 20 // constant part in bytes
	paperSender  = 168
	paperSlot    = 16
	paperReceive = 160
)

func acpMemory(ctx context.Context, r *run) error {
	counts := r.Ints("ranks")
	r.Plan(len(counts) + len(r.Ints("slot-sizes")))
	var sizes []float64
	for _, n := range counts {
		r.Step("%d ranks", n)
		bytes, err := rankMemory(n)
		if err != nil {
			return err
		}
		sizes = append(sizes, bytes)
		r.Emit(bench.Row{Series: "basic-layer", X: float64(n), XUnit: ranksUnit, Y: bytes, YUnit: measure.Bytes})
	}
	if first, last := 0, len(counts)-1; counts[last] > counts[first] {
		each := (sizes[last] - sizes[first]) / float64(counts[last]-counts[first])
		r.atMost("bytes for each rank", each, paperRank)
		r.atMost("MB constant part", (sizes[first]-each*float64(counts[first]))/1e6, paperConst/1e6)
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
	var over extreme
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
				row := bench.Row{Series: fmt.Sprintf("%s-%d-slots", role, n), X: float64(size), XUnit: measure.Bytes, Y: float64(ch.Memory()), YUnit: measure.Bytes}
				r.Emit(row)
				over.keepMax(float64(ch.Memory()-formula), "%s with %d slots of %s", role, n, sizeName(size))
				row.Series, row.Y = row.Series+"-heap", all
				r.Emit(row)
			}
		}
	}
	r.addNote(over.value <= 0, "%s: %+.0f bytes over the formula (at most 0)", over.where, over.value)
	return nil
}
