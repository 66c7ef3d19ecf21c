package deadlock

import (
	"cmp"
	"errors"
	"slices"
)

// A Report is the result of the analysis of a job.
type Report struct {
	Size    int
	States  []*State // of the ranks that replied, by rank
	NoReply []int    // the other ranks

	Knot       []int      // ranks that cannot progress; see the package comment
	Cycle      []Edge     // a cycle in the knot: each edge waits for the next
	Mismatches []Mismatch // collective calls that do not match

	stateByRank map[int]*State
	minWait     int64
}

// An Edge is a rank that waits for another rank in a call.
type Edge struct {
	Rank, For int
	Call      *Call
}

// ErrMismatch is wrapped by the error of a call that other ranks do not make.
var ErrMismatch = errors.New("mpi: calls of the ranks do not match")

// A Mismatch is a position in the sequence of a communicator's collective calls at
// which not all ranks have made the same call.
type Mismatch struct {
	Comm  string
	Calls []Group
}

// A Group is a call and the ranks that made it.
type Group struct {
	Call  Collective
	Ranks []int
	At    string // source position of the first rank
}

// Analyze analyzes the states of the ranks of a job. Of two states of a rank it uses
// the first. The states are not a consistent snapshot: calls that have waited less than
// millis count as able to progress.
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

// isBlocked reports whether the rank waits in a foreground call.
func (s *State) isBlocked() bool {
	return slices.ContainsFunc(s.Calls, func(c Call) bool { return !c.Aside })
}

// findKnot reduces the graph: it repeatedly removes the ranks that can progress. The
// ranks left are the knot.
func (r *Report) findKnot() {
	free := make(map[int]bool, r.Size)
	for _, rank := range r.NoReply {
		free[rank] = true
	}
	for _, s := range r.States {
		free[s.Rank] = !s.isBlocked() || s.Quiet < r.minWait || s.MoreCalls > 0
	}
	canProgress := func(c *Call) bool {
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
				if canProgress(&s.Calls[i]) {
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

// findCycle follows the edges within the knot until a rank repeats. Each rank has an
// edge within the knot, because a rank that waited only for ranks outside could
// progress.
func (r *Report) findCycle() {
	if len(r.Knot) == 0 {
		return
	}
	var path []Edge
	at := map[int]int{} // index in path, by rank
	for rank := r.Knot[0]; ; {
		if i, met := at[rank]; met {
			r.Cycle = path[i:]
			return
		}
		at[rank] = len(path)
		e, ok := r.waitEdge(rank)
		if !ok {
			return // a call that waits for no rank
		}
		path = append(path, e)
		rank = e.For
	}
}

// waitEdge returns an edge from a rank to another rank of the knot. It returns an edge
// to the rank itself only if one of its calls waits for no other rank.
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

// A collectiveKey identifies a position in the sequence of a communicator's collective
// calls.
type collectiveKey struct {
	comm  uint32
	ranks uint64
	seq   uint32
}

func (c *Collective) key() collectiveKey { return collectiveKey{c.Comm, c.Ranks, c.Seq} }

// sameCall reports whether two calls at one position can be the same. Names of
// communicators are local to each rank and are not compared.
func (c *Collective) sameCall(o *Collective) bool {
	return c.What == o.What && (c.With == o.With || c.Begun || o.Begun)
}

// findMismatches compares the collective calls in which ranks wait with those that
// other ranks have made or started at the same position.
func (r *Report) findMismatches() {
	groups := map[collectiveKey][]Group{}
	var order []collectiveKey
	add := func(rank int, c *Collective, where string) {
		p := c.key()
		list := groups[p]
		i := slices.IndexFunc(list, func(g Group) bool { return g.Call.sameCall(c) })
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

// IsStuck reports whether the job cannot recover: collective calls do not match, or
// there is a knot whose calls have all waited for at least millis.
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
