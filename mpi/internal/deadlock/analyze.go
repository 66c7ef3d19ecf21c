package deadlock

import (
	"cmp"
	"slices"
)

// Report is what is known of a job.
type Report struct {
	Size    int
	States  []*State // of those that have answered, by rank
	NoReply []int    // those that have not

	Knot       []int      // ranks that cannot go on: see the package
	Cycle      []Edge     // of them: each waits for the next, the last for the first
	Mismatches []Mismatch // collective calls that do not belong together

	stateByRank map[int]*State
	minWait     int64
}

// Edge is a rank that waits for another.
type Edge struct {
	Rank, For int
	Call      *Call
}

// Mismatch is a place among a communicator's collective calls where not all ranks
// have made the same one.
type Mismatch struct {
	Comm  string
	Calls []Group
}

// Group is who has made which call.
type Group struct {
	Call  Collective
	Ranks []int
	At    string // where the first of them is
}

// Analyze finds out what can be known from the states of some ranks of a job. Of
// ranks that are there twice it takes the first. The states are not of one moment: calls
// that have waited less than so many ms may have what they wait for, and can go on.
func Analyze(size int, states []*State, millis int64) *Report {
	r := &Report{Size: size, stateByRank: map[int]*State{}, minWait: millis}
	for _, s := range states {
		if s.Rank >= 0 && s.Rank < size && r.stateByRank[s.Rank] == nil {
			r.stateByRank[s.Rank] = s
			r.States = append(r.States, s)
		}
	}
	slices.SortFunc(r.States, func(a, b *State) int { return cmp.Compare(a.Rank, b.Rank) })
	for rank := range size {
		if r.stateByRank[rank] == nil {
			r.NoReply = append(r.NoReply, rank)
		}
	}
	r.findKnot()
	r.findCycle()
	r.findMismatches()
	return r
}

// isBlocked reports whether a rank waits, whatever it does.
func (s *State) isBlocked() bool {
	return slices.ContainsFunc(s.Calls, func(c Call) bool { return !c.Aside })
}

// findKnot finds those that can go on, from those who do not wait, as long as there
// are more; the others are the knot.
func (r *Report) findKnot() {
	free := make(map[int]bool, r.Size)
	for _, rank := range r.NoReply {
		free[rank] = true
	}
	for _, s := range r.States {
		free[s.Rank] = !s.isBlocked() || s.Quiet < r.minWait || s.MoreCalls > 0
	}
	goesOn := func(c *Call) bool {
		is := func(rank int) bool { return free[rank] || rank < 0 || rank >= r.Size }
		if c.Millis < r.minWait || c.Busy {
			return true
		}
		if c.Any {
			return slices.ContainsFunc(c.For, is)
		}
		return !slices.ContainsFunc(c.For, func(rank int) bool { return !is(rank) })
	}
	for more := true; more; {
		more = false
		for _, s := range r.States {
			if free[s.Rank] {
				continue
			}
			for i := range s.Calls {
				if goesOn(&s.Calls[i]) {
					free[s.Rank], more = true, true
				}
			}
		}
	}
	for rank := range r.Size {
		if !free[rank] {
			r.Knot = append(r.Knot, rank)
		}
	}
}

// findCycle follows those who wait within the knot until it meets somebody again.
// There is a way on from each: who waits for one who can go on, and for no other,
// could go on himself.
func (r *Report) findCycle() {
	if len(r.Knot) == 0 {
		return
	}
	var path []Edge
	at := map[int]int{} // by rank
	for rank := r.Knot[0]; ; {
		if i, met := at[rank]; met {
			r.Cycle = path[i:]
			return
		}
		at[rank] = len(path)
		e, ok := r.waitEdge(rank)
		if !ok {
			return // a call that waits for nobody
		}
		path = append(path, e)
		rank = e.For
	}
}

// waitEdge is a call of a rank of the knot, and one of the knot that it waits for: itself
// only if a call waits for nobody else.
func (r *Report) waitEdge(rank int) (self Edge, ok bool) {
	s := r.stateByRank[rank]
	for i := range s.Calls {
		for _, other := range s.Calls[i].For {
			if _, in := slices.BinarySearch(r.Knot, other); !in {
				continue
			}
			if e := (Edge{rank, other, &s.Calls[i]}); other != rank {
				return e, true
			} else if !ok {
				self, ok = e, true
			}
		}
		if ok {
			return self, true
		}
	}
	return self, ok
}

// collectiveKey is one among a communicator's collective calls.
type collectiveKey struct {
	comm  uint32
	ranks uint64
	seq   uint32
}

func (c *Collective) key() collectiveKey { return collectiveKey{c.Comm, c.Ranks, c.Seq} }

// matches reports whether two calls at one place can be the same. A communicator's name
// is each rank's own business.
func (c *Collective) matches(o *Collective) bool {
	return c.What == o.What && (c.With == o.With || c.Begun || o.Begun)
}

// findMismatches compares the collective calls that ranks are in with those that
// others are in, or have begun, at the same place.
func (r *Report) findMismatches() {
	groups := map[collectiveKey][]Group{}
	var order []collectiveKey
	add := func(rank int, c *Collective, where string) {
		p := c.key()
		list := groups[p]
		i := slices.IndexFunc(list, func(g Group) bool { return g.Call.matches(c) })
		switch {
		case i < 0:
			groups[p] = append(list, Group{*c, []int{rank}, where})
		case !slices.Contains(list[i].Ranks, rank):
			list[i].Ranks = append(list[i].Ranks, rank)
		}
	}
	for _, s := range r.States {
		for i := range s.Calls {
			if c := s.Calls[i].Collective; c != nil {
				if groups[c.key()] == nil {
					order = append(order, c.key())
				}
				add(s.Rank, c, s.Calls[i].At)
			}
		}
	}
	for _, s := range r.States {
		for i := range s.Collectives {
			c := &s.Collectives[i]
			waits := slices.ContainsFunc(s.Calls, func(k Call) bool { return k.Collective != nil && k.Collective.key() == c.key() })
			if groups[c.key()] != nil && !waits {
				add(s.Rank, c, "")
			}
		}
	}
	for _, p := range order {
		if list := groups[p]; len(list) > 1 {
			r.Mismatches = append(r.Mismatches, Mismatch{list[0].Call.Name, list})
		}
	}
}

// IsStuck reports whether what is seen cannot end well by itself: there is a knot whose
// calls have all waited for so many ms, or collective calls do not belong together.
func (r *Report) IsStuck(millis int64) bool {
	if len(r.Mismatches) > 0 {
		return true
	}
	for _, rank := range r.Knot {
		s := r.stateByRank[rank]
		if s.Quiet < millis || slices.ContainsFunc(s.Calls, func(c Call) bool { return c.Millis < millis }) {
			return false
		}
	}
	return len(r.Knot) > 0
}
