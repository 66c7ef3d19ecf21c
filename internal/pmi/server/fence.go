package server

import "github.com/softrnic/softrnic/internal/pmi/wire"

// enterFence is a rank that comes to the fence. All leave it together: PMI-1 calls it
// a barrier.
func (b *kvs) enterFence(rank int, m wire.Message, o *outcome) {
	b.ranks[rank].state, b.ranks[rank].fence = AtFence, m
	if b.waiting++; b.waiting < b.Size {
		b.checkStuck(o)
		return
	}
	b.waiting = 0
	b.fences++
	for i := range b.ranks {
		r := &b.ranks[i]
		r.state = Running
		if r.version == wire.PMI2 {
			o.replyV2(i, r.fence, "rc", "0")
		} else {
			o.say(i, wire.PMI1, "barrier_out")
		}
	}
}

// finalize is a rank that needs the manager no more.
func (b *kvs) finalize(rank int, o *outcome) {
	b.ranks[rank].state = Finalized
	b.checkStuck(o)
}

// markEnded is a rank whose process has ended.
func (b *kvs) markEnded(rank int, o *outcome) {
	r := &b.ranks[rank]
	if r.ended {
		return
	}
	r.ended = true
	if r.state == AtFence {
		b.waiting-- // its word does not count
		r.state = Running
	}
	b.checkStuck(o)
}

// checkStuck finds out whether ranks wait at the fence for one that does not come any
// more.
func (b *kvs) checkStuck(o *outcome) {
	if b.waiting == 0 {
		return
	}
	e := Event{Kind: Stuck, Rank: -1}
	for i, r := range b.ranks {
		switch {
		case r.state == AtFence:
			e.Waiting = append(e.Waiting, i)
		case r.state == Finalized || r.ended:
			e.Missing = append(e.Missing, i)
		}
	}
	if len(e.Missing) > 0 {
		o.events = append(o.events, e)
	}
}
