package server

import "github.com/softrnic/softrnic/internal/pmi/wire"

// arrive is a rank that comes to the fence. All leave it together: PMI-1 calls it
// a barrier.
func (b *book) arrive(rank int, m wire.Message, o *outcome) {
	b.ranks[rank].state, b.ranks[rank].fence = Fence, m
	if b.waiting++; b.waiting < b.Size {
		b.stuck(o)
		return
	}
	b.waiting = 0
	b.fences++
	for i := range b.ranks {
		r := &b.ranks[i]
		r.state = Running
		if r.version == wire.PMI2 {
			o.answer(i, r.fence, "rc", "0")
		} else {
			o.say(i, wire.PMI1, "barrier_out")
		}
	}
}

// leave is a rank that needs the manager no more.
func (b *book) leave(rank int, o *outcome) {
	b.ranks[rank].state = Finalized
	b.stuck(o)
}

// ended is a rank whose process has ended.
func (b *book) ended(rank int, o *outcome) {
	r := &b.ranks[rank]
	if r.ended {
		return
	}
	r.ended = true
	if r.state == Fence {
		b.waiting-- // its word does not count
		r.state = Running
	}
	b.stuck(o)
}

// stuck finds out whether ranks wait at the fence for one that does not come any
// more.
func (b *book) stuck(o *outcome) {
	if b.waiting == 0 {
		return
	}
	e := Event{Kind: Stuck, Rank: -1}
	for i, r := range b.ranks {
		switch {
		case r.state == Fence:
			e.Waiting = append(e.Waiting, i)
		case r.state == Finalized || r.ended:
			e.Gone = append(e.Gone, i)
		}
	}
	if len(e.Gone) > 0 {
		o.events = append(o.events, e)
	}
}
