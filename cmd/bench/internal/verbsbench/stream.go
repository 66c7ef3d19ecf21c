package verbsbench

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/verbs"
)

const (
	workingSet    = 4 << 20  // bytes that messages are taken from and put to in turn
	maxInFlight   = 32 << 20 // bytes outstanding at most, but for a few messages
	defaultDepth  = 128      // requests outstanding; perftest's default
	fragmentBatch = 32       // pieces of a long UD message posted at once
)

// streamPlan is how both ends of a stream lay out what they move. A unit is one work
// request: a message, or a piece of a long UD message. Memory is slots of one
// message each, walked through in turn.
type streamPlan struct {
	StreamOptions
	kind           opKind
	fragments      int // units in a message
	unitSize       int // bytes in a unit, but for the last of a message
	slots          int
	signalInterval int // units of which the last is signaled; whole lists
	window         int // units in flight that nobody acknowledges (UC, UD)
}

func newPlan(e *side, o StreamOptions) (*streamPlan, error) {
	kind, err := o.Op.lookupKind()
	if err != nil {
		return nil, err
	}
	if o.Size < 1 || o.Op == RCAtomic {
		return nil, fmt.Errorf("verbsbench: %s cannot stream messages of %d bytes", o.Op, o.Size)
	}
	p := &streamPlan{StreamOptions: o, kind: kind, fragments: 1, unitSize: o.Size}
	p.slots = max(2, workingSet/o.Size)
	p.List = max(1, o.List)
	if mtu := e.path.Bytes(); kind.transport == verbs.UD && o.Size > mtu {
		p.fragments, p.unitSize = (o.Size+mtu-1)/mtu, mtu
		p.List = fragmentBatch
		if p.Depth > 0 {
			p.List = min(fragmentBatch, p.Depth)
		}
	}
	if p.Depth == 0 {
		p.Depth = min(max(defaultDepth, 16*p.List), max(4*p.List, maxInFlight/p.unitSize))
	}
	if p.Depth < p.List {
		return nil, fmt.Errorf("verbsbench: lists of %d with %d requests outstanding", p.List, p.Depth)
	}
	p.signalInterval = max(1, p.Depth/4/p.List) * p.List
	return p, nil
}

// qpCap of the queue pairs at both ends.
func (p *streamPlan) qpCap() verbs.QPCap {
	c := verbs.QPCap{MaxSendWR: p.Depth, MaxSendSGE: 1}
	if !p.kind.isFetch() {
		c.MaxRecvWR, c.MaxRecvSGE = max(2*p.Depth, 512), 1 // perftest's default
	}
	return c
}

// unitRange is where unit u is in memory, and its length.
func (p *streamPlan) unitRange(u uint64) (off, n int) {
	if p.fragments == 1 {
		return int(u%uint64(p.slots)) * p.Size, p.Size
	}
	message, k := u/uint64(p.fragments), int(u%uint64(p.fragments))*p.unitSize
	return int(message%uint64(p.slots))*p.Size + k, min(p.unitSize, p.Size-k)
}

// A packet costs a socket about as much as it is long and this for its
// bookkeeping (sk_buff and skb_shared_info).
const packetCost = 1024

// limitWindow fits the units in flight into the peer's socket buffer, half
// filled.
func (p *streamPlan) limitWindow(mtu, buffer int) {
	packets := (p.unitSize + mtu - 1) / mtu
	cost := p.unitSize + packets*packetCost
	p.window = min(p.Depth, max(p.List, buffer/2/cost))
}

func openStream(ctx context.Context, e *side, o StreamOptions) (runner, error) {
	p, err := newPlan(e, o)
	if err != nil {
		return nil, err
	}
	if e.Rank == 0 {
		return openSource(ctx, e, p)
	}
	return openSink(ctx, e, p)
}

// verifyMemory compares memory with what count messages have put there: nothing but
// the pattern in the slots that they fill, and nothing behind them. With
// holes, some may be missing.
func (p *streamPlan) verifyMemory(memory []byte, want payload.Pattern, count int64, holes bool) error {
	filled := int(min(count, int64(p.slots))) * p.Size
	return errors.Join(want.Check(memory[:filled], holes), payload.CheckEmpty(memory[filled:]))
}
