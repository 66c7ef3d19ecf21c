package mpi

import (
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// What programs ask for in vain tells of itself, as engine.Polled, once in a while: in
// the words that it has when somebody waits for it. They are made at once, in the
// goroutine that asks, since a moment later the request may be the program's again. The
// key tells it apart from others: a request's *work if it is a call in the background,
// of whose goroutine more is known (lookout_polls.go).

// inVain is what the lookout learns of it.
type inVain struct {
	deadlock.Call
	ask  []int       // ranks that it depends on, perhaps more than Call says
	over func() bool // with the engine's lock: it would not be in vain now; nil if nobody knows
}

func note(d deadlock.Call, over func() bool) *inVain { return &inVain{d, d.For, over} }

// Polled implements engine.Polled.
func (r *Request) Polled(p *engine.Polls) {
	if p != nil && !r.idle() && p.New(&r.polled) {
		r.poll(p)
	}
}

func (r *Request) poll(p *engine.Polls) {
	if r.work.over != nil {
		p.Add(&r.work, nil)
		return
	}
	p.Add(r, note(r.describe(), over([]*Request{r}, newAll)))
}

// over asks several requests as ready does, unless one is persistent: the program may
// have begun it again. Calls in the background are left out.
func over[W engine.Waitable](rs []*Request, ready func([]*Request) W) func() bool {
	var kept []*Request // rs is the program's
	for _, r := range rs {
		switch {
		case r == nil || r.work.over != nil:
		case r.persistent:
			return nil
		default:
			kept = append(kept, r)
		}
	}
	return ready(kept).Ready
}

// anyOfKey and allOfKey are the keys of several requests: by the first of them that is new
// in a round, which may be polled by itself as well.
type (
	anyOfKey struct{ *Request }
	allOfKey struct{ *Request }
)

// Polled implements engine.Polled. Requests that are polled in different company are
// noted again.
func (s *some) Polled(p *engine.Polls) {
	known := true
	for _, r := range s.rs {
		known = known && (r == nil || r.polled == p.Round())
	}
	if known {
		return
	}
	if first := fresh(p, s.rs, func(r *Request) *uint64 { return &r.polled }); first != nil {
		p.Add(anyOfKey{first}, several("TestAny", s.rs, true, over(s.rs, newSome)))
	}
}

// Polled implements engine.Polled.
func (a all) Polled(p *engine.Polls) {
	known := true
	for _, r := range a {
		known = known && (r == nil || r.polledAll == p.Round())
	}
	if known {
		return
	}
	if first := fresh(p, a, func(r *Request) *uint64 { return &r.polledAll }); first != nil {
		p.Add(allOfKey{first}, several("TestAll", a, false, over(a, newAll)))
	}
}

// fresh is the first of several requests that are not done whose round is another, and
// notes the round. Calls in the background are noted as what they are.
func fresh(p *engine.Polls, rs []*Request, round func(*Request) *uint64) (first *Request) {
	for _, r := range rs {
		switch {
		case r == nil || !p.New(round(r)) || r.idle() || r.Ready():
		case r.work.over != nil:
			r.poll(p)
		case first == nil:
			first = r
		}
	}
	return first
}

// several describes requests of which one is enough, or all are needed. Calls in the
// background are not among them.
func several(name string, rs []*Request, any bool, over func() bool) *inVain {
	d := &inVain{Call: deadlock.Call{Any: any}, over: over}
	n, known := 0, true
	for _, r := range rs {
		if r.idle() || r.work.over != nil || r.Ready() {
			continue
		}
		if n++; n == 1 {
			one := r.describe()
			d.What, d.Comm = one.What, one.Comm
		}
		ranks, enough := r.whom()
		known = known && len(ranks) > 0
		d.ask = append(d.ask, ranks...)
		if any || !enough || len(ranks) == 1 { // of several that are all needed any of many ranks is left out
			d.For = append(d.For, ranks...)
		}
	}
	d.What = company(name, d.What, n)
	for _, list := range []*[]int{&d.ask, &d.For} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if any && !known {
		d.For, d.Any = nil, false
	}
	return d
}

func newSome(rs []*Request) *some { return &some{rs: rs} }
func newAll(rs []*Request) all    { return rs }

// maxProbes is how many kinds of probes of a communicator are told apart.
const maxProbes = 64

// probes are those of a communicator that have found nothing in a round. The engine's
// lock guards them.
type probes struct {
	round uint64
	last  match.Envelope
	seen  map[match.Envelope]bool
}

type probeKey struct {
	c       *Comm
	pattern match.Envelope
}

// Polled implements engine.Polled.
func (s *sought) Polled(p *engine.Polls) {
	x := &s.comm.probes
	switch {
	case x.seen == nil:
		x.seen = map[match.Envelope]bool{}
	case x.round != p.Round():
		clear(x.seen)
	case x.last == s.pattern || x.seen[s.pattern]:
		return
	}
	x.round, x.last = p.Round(), s.pattern
	if p.Room(len(x.seen) < maxProbes) {
		x.seen[s.pattern] = true
		d := s.describe()
		d.What = "Iprobe" + strings.TrimPrefix(d.What, "Probe")
		p.Add(probeKey{s.comm, s.pattern}, note(d, func() bool {
			return s.core.Probe(s.pattern, false) != nil || s.core.SourceError(s.pattern, s.comm.ranks) != nil
		}))
	}
}

// Polled implements engine.Polled.
func (x *winWait) Polled(p *engine.Polls) {
	if x.polled != nil && p.New(x.polled) {
		p.Add(x.polled, note(x.describe(), func() bool { return x.w.broken != nil || x.until() }))
	}
}

// unseen is asked for by this package for its own sake.
type unseen struct{ engine.Waitable }

var _ = []engine.Polled{&Request{}, &some{}, all{}, &sought{}, &winWait{}}
