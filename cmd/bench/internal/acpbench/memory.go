package acpbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// liveHeap returns the bytes of this process's live heap, to which registered memory belongs.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // also the memory of finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// A RankMemory is the memory of a rank in bytes: the growth of its process's live heap since before the
// rank opened its adapter.
type RankMemory struct {
	Idle      float64 // after acp.Init
	Connected float64 // after an operation on each other rank, which makes all connections
}

// RankMemory connects all ranks of a fresh job to each other, and returns the average of their memory.
func (j *Job) RankMemory(ctx context.Context) (mean RankMemory, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{Memory: &memoryRound{}})
	if err != nil {
		return mean, err
	}
	for _, r := range ranks {
		mean.Idle += r.RankMemory.Idle / float64(len(ranks))
		mean.Connected += r.RankMemory.Connected / float64(len(ranks))
	}
	return mean, nil
}

// A ChannelMemory is the memory of one end of a channel in bytes.
type ChannelMemory struct {
	First   float64 // growth of the live heap by the first channel between two ranks and their connections
	Each    float64 // growth by each channel of a later batch, for which the ranks are connected
	Account float64 // acp.Channel.Memory
}

// channelBatches is the number of batches of channels whose growth is measured. Their median leaves out the
// buffers that the adapter allocates once, when it first sends or receives as many packets.
const channelBatches = 5

// ChannelMemory creates a channel from rank 0 to rank 1 of a fresh job and then batches of count
// channels, sends more messages through each than it has slots, and returns the memory of the sender
// and of the receiver.
func (j *Job) ChannelMemory(ctx context.Context, c Channel, count int) (ends [2]ChannelMemory, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{Memory: &memoryRound{Channel: c, Count: count}})
	if err != nil {
		return ends, err
	}
	for i := range ends {
		ends[i] = ranks[i].ChannelMemory
	}
	return ends, nil
}

// A memoryRound measures the memory of channels, or, if their number is 0, that of ranks.
type memoryRound struct {
	Channel
	Count int
}

func (r *rank) measureMemory(ctx context.Context, q memoryRound) (out reply, err error) {
	if r.connected {
		return out, errors.New("acpbench: memory: want a fresh job")
	}
	r.connected = true
	if q.Count == 0 {
		out.RankMemory, err = r.measureRank(ctx)
		return out, err
	}
	if r.Size() != 2 {
		return out, fmt.Errorf("acpbench: memory of channels: want 2 ranks, not %d", r.Size())
	}
	out.ChannelMemory, err = r.measureChannels(ctx, q)
	return out, err
}

func (r *rank) measureRank(ctx context.Context) (m RankMemory, err error) {
	if m.Idle, err = r.heapTogether(ctx); err != nil {
		return m, err
	}
	for other := range r.Size() {
		if other != r.Rank() {
			acp.FetchAdd[uint64](r.Process, nil, r.StarterGA(other), 1, acp.None)
		}
	}
	if err := r.Complete(ctx, acp.All); err != nil {
		return m, err
	}
	if err := r.Sync(ctx); err != nil {
		return m, err
	}
	m.Connected, err = r.heapTogether(ctx)
	if n := r.LoadStarter(0); err == nil && n != uint64(r.Size()-1) {
		err = fmt.Errorf("wrong data: %d of %d ranks have connected", n, r.Size()-1)
	}
	return m, err
}

// heapTogether returns the growth of the live heap since before acp.Init, measured while no rank
// communicates.
func (r *rank) heapTogether(ctx context.Context) (float64, error) {
	if err := proc.Barrier(ctx, r.w); err != nil {
		return 0, err
	}
	bytes := liveHeap() - r.before
	return bytes, proc.Barrier(ctx, r.w)
}

func (r *rank) measureChannels(ctx context.Context, q memoryRound) (m ChannelMemory, err error) {
	list := make([]*acp.Channel, 0, 1+channelBatches*q.Count)
	heap, err := r.heapTogether(ctx)
	if err != nil {
		return m, err
	}
	growth := func(count int) (float64, error) { // of each of count further channels
		for range count {
			ch, err := r.openUsed(ctx, q.Channel)
			if err != nil {
				return 0, err
			}
			list = append(list, ch)
		}
		before := heap
		heap, err = r.heapTogether(ctx)
		return (heap - before) / float64(count), err
	}
	if m.First, err = growth(1); err != nil {
		return m, err
	}
	each := make([]float64, channelBatches)
	for i := range each {
		if each[i], err = growth(q.Count); err != nil {
			return m, err
		}
	}
	m.Each, m.Account = measure.Median(each), float64(list[0].Memory())
	runtime.KeepAlive(list)
	return m, nil
}

// openUsed opens a channel from rank 0 to rank 1, and sends a word through each of its slots.
func (r *rank) openUsed(ctx context.Context, c Channel) (*acp.Channel, error) {
	slots := [2]int{c.SendSlots, c.RecvSlots}
	ch, err := r.NewChannel(0, 1, c.channelOptions(slots[r.Rank()]))
	if err != nil {
		return nil, err
	}
	word := make([]byte, 8)
	for i := range 1 + max(c.SendSlots, c.RecvSlots) {
		n := 0
		if r.Rank() == 0 {
			copy(word, newPattern(len(word), i))
			_, err = ch.Send(word).Wait(ctx)
		} else if n, err = ch.Recv(word).Wait(ctx); err == nil {
			err = verifyMessage(word, n, newPattern(len(word), i))
		}
		if err != nil {
			return nil, err
		}
	}
	return ch, nil
}
