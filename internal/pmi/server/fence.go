package server

import "github.com/softrnic/softrnic/internal/pmi/wire"

// enterFence handles a rank that enters the fence (barrier in PMI-1). All ranks leave
// it together.
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
			o.addReply(i, wire.PMI1, "barrier_out")
		}
	}
}

// finalize handles a rank that ends the use of the manager.
func (b *kvs) finalize(rank int, o *outcome) {
	b.ranks[rank].state = Finalized
	b.checkStuck(o)
}

// markEnded handles the end of a rank's process.
func (b *kvs) markEnded(rank int, o *outcome) {
	r := &b.ranks[rank]
	if r.ended {
		return
	}
	r.ended = true
	if r.state == AtFence {
		b.waiting-- // it no longer counts as waiting
		r.state = Running
	}
	b.checkStuck(o)
}

// checkStuck reports an event if ranks wait at the fence for one that cannot enter it
// any more.
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
