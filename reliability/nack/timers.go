package nack

import "container/heap"

// A timer is a peer's entry in timers.
type timer struct {
	at    Time // 0: not scheduled
	index int
}

// timers is a heap of the deadlines of all peers. A deadline that moves later
// stays in place and is corrected when it expires, so that an acknowledgement
// or an idle peer costs no heap operation.
type timers []*peer

// schedule ensures that p expires at time at or earlier.
func (t *timers) schedule(p *peer, at Time) {
	switch {
	case at == 0 || p.timer.at != 0 && p.timer.at <= at:
	case p.timer.at == 0:
		p.timer.at = at
		heap.Push(t, p)
	default:
		p.timer.at = at
		heap.Fix(t, p.timer.index)
	}
}

// popDue removes and returns a peer whose deadline has passed, or nil.
func (t *timers) popDue(now Time) *peer {
	if len(*t) == 0 || (*t)[0].timer.at > now {
		return nil
	}
	return heap.Pop(t).(*peer)
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].timer.at < t[j].timer.at }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer.index, t[j].timer.index = i, j
}

func (t *timers) Push(x any) {
	p := x.(*peer)
	p.timer.index = len(*t)
	*t = append(*t, p)
}

func (t *timers) Pop() any {
	old := *t
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	p.timer = timer{}
	return p
}
