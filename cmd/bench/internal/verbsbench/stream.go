package verbsbench

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/verbs"
)

const (
	workingSet    = 4 << 20  // bytes of memory that messages cycle through
	maxInFlight   = 32 << 20 // maximum bytes in flight, except for a few messages
	defaultDepth  = 128      // requests in flight; perftest's default
	fragmentBatch = 32       // fragments of a long UD message in one list
)

// A streamPlan is the memory layout and the flow control of a stream, equal on both sides. A
// unit is one work request: a message, or a fragment of a long UD message. Memory has slots of
// one message each, which are used in turn.
type streamPlan struct {
	StreamOptions
	kind           opKind
	fragments      int // units of a message
	unitSize       int // bytes of a unit, except for the last of a message
	slots          int
	signalInterval int // units from one signaled unit to the next, a multiple of List
	window         int // maximum units in flight (UC, UD)
}

func newPlan(e *side, o StreamOptions) (*streamPlan, error) {
	kind, err := o.Op.lookupKind()
	if err != nil {
		return nil, err
	}
	if o.Size < 1 || o.Op == RCAtomic {
		return nil, fmt.Errorf("verbsbench: stream of %s with %d bytes: not supported", o.Op, o.Size)
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
		return nil, fmt.Errorf("verbsbench: list of %d requests: want at most the depth, %d", p.List, p.Depth)
	}
	p.signalInterval = max(1, p.Depth/4/p.List) * p.List
	return p, nil
}

// qpCap returns the limits of the queue pairs on both sides.
func (p *streamPlan) qpCap() verbs.QPCap {
	c := verbs.QPCap{MaxSendWR: p.Depth, MaxSendSGE: 1}
	if !p.kind.isFetch() {
		c.MaxRecvWR, c.MaxRecvSGE = max(2*p.Depth, 512), 1 // perftest's default
	}
	return c
}

// unitRange returns memory offset and length of unit u.
func (p *streamPlan) unitRange(u uint64) (off, n int) {
	if p.fragments == 1 {
		return int(u%uint64(p.slots)) * p.Size, p.Size
	}
	message, k := u/uint64(p.fragments), int(u%uint64(p.fragments))*p.unitSize
	return int(message%uint64(p.slots))*p.Size + k, min(p.unitSize, p.Size-k)
}

// packetCost is the memory that a socket buffer is charged for a packet in addition to its
// length (sk_buff and skb_shared_info).
const packetCost = 1024

// limitWindow limits the units in flight to half of the peer's socket buffer.
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

// verifyMemory compares memory with the content after count messages: the pattern in their
// slots and zeroes behind. With holes, messages may be missing.
func (p *streamPlan) verifyMemory(memory []byte, want payload.Pattern, count int64, holes bool) error {
	filled := int(min(count, int64(p.slots))) * p.Size
	return errors.Join(want.Check(memory[:filled], holes), payload.CheckEmpty(memory[filled:]))
}
