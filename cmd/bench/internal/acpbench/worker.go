package acpbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

const (
	worker   = "acpbench"
	roleRank = "rank"
)

// A request requests one round from all ranks. One of the fields is set.
type request struct {
	Ping    *pingRound    `json:",omitempty"`
	Stream  *streamRound  `json:",omitempty"`
	Copy    *copyRound    `json:",omitempty"`
	Connect *connectRound `json:",omitempty"`
	Overlap *overlapRound `json:",omitempty"`
	Memory  *memoryRound  `json:",omitempty"`
	Compute time.Duration `json:",omitempty"` // processor time of a computation of rank 0
}

// A reply is the result of a round on one rank.
type reply struct {
	Figure  float64          `json:",omitempty"`
	Latency *measure.Latency `json:",omitempty"`
	Free    *measure.Latency `json:",omitempty"` // of connectRound, whose Latency is that of connecting
	Overlap overlap.Result   `json:",omitzero"`

	RankMemory    RankMemory    `json:",omitzero"`
	ChannelMemory ChannelMemory `json:",omitzero"`
}

func init() {
	proc.RegisterArgs(worker, roleRank, func(ctx context.Context, w *proc.Worker, c Config) error {
		before := liveHeap()
		p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{Progress: c.Progress})
		if err != nil {
			return err
		}
		return proc.Serve(ctx, w, (&rank{Process: p, w: w, before: before}).serveRequest) // ends with the process, without Finalize
	})
}

// A rank is one of the processes.
type rank struct {
	*acp.Process
	w            *proc.Worker
	pairs        map[Channel]*channelPair
	memory       *acp.Region
	remoteMemory []acp.GA // memory of all ranks
	before       float64  // live heap before acp.Init
	connected    bool     // memory was measured, for which the ranks have connected
}

func (r *rank) serveRequest(ctx context.Context, q request) (out reply, err error) {
	switch {
	case q.Ping != nil:
		out.Latency, err = r.runPing(ctx, *q.Ping)
	case q.Stream != nil:
		out.Figure, err = r.runStream(ctx, *q.Stream)
	case q.Copy != nil:
		out.Figure, err = r.runCopies(ctx, *q.Copy)
	case q.Connect != nil:
		out.Latency, out.Free, err = r.runConnects(ctx, *q.Connect)
	case q.Overlap != nil:
		out.Overlap, err = r.runOverlap(ctx, *q.Overlap)
	case q.Memory != nil:
		out, err = r.measureMemory(ctx, *q.Memory)
	case q.Compute > 0 && r.Rank() == 0:
		out.Figure = overlap.Stolen(q.Compute)
	case q.Compute > 0:
	default:
		err = errors.New("acpbench: empty request")
	}
	if err == nil {
		err = proc.Barrier(ctx, r.w) // idle ranks sleep, as in the baseline, and their adapters serve them
	}
	return out, err
}

// A channelPair is a channel from this rank to the peer, and one back.
type channelPair struct{ to, from *acp.Channel }

// openChannels returns the channels with parameters c. Both ranks create them in the same
// order.
func (r *rank) openChannels(c Channel) (*channelPair, error) {
	if p := r.pairs[c]; p != nil {
		return p, nil
	}
	if r.pairs == nil {
		r.pairs = map[Channel]*channelPair{}
	}
	p := &channelPair{}
	for from := range 2 {
		slots := cmp.Or(c.RecvSlots, 8)
		if from == r.Rank() {
			slots = cmp.Or(c.SendSlots, 2)
		}
		ch, err := r.NewChannel(from, 1-from, c.channelOptions(slots))
		if err != nil {
			return nil, err
		}
		if from == r.Rank() {
			p.to = ch
		} else {
			p.from = ch
		}
	}
	r.pairs[c] = p
	return p, nil
}

// newPattern returns n bytes of message i.
func newPattern(n, i int) []byte {
	b := make([]byte, n)
	for k := range b {
		b[k] = byte(k*131 + k>>8 + i)
	}
	return b
}

// verifyMessage compares a received message with the expected one.
func verifyMessage(got []byte, n int, want []byte) error {
	if n != len(want) {
		return fmt.Errorf("wrong data: message of %d bytes, want %d", n, len(want))
	}
	for i, b := range got[:n] {
		if b != want[i] {
			return fmt.Errorf("wrong data: byte %d of %d: 0x%02x, want 0x%02x", i, n, b, want[i])
		}
	}
	return nil
}
