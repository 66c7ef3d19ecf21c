package mpi

import (
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// What programs ask for in vain tells of itself, as engine.PollObserver, once in a while: in
// the words that it has when somebody waits for it. They are made at once, in the
// goroutine that asks, since a moment later the request may be the program's again. The
// key tells it apart from others: a request's *work if it is a call in the background,
// of whose goroutine more is known (lookout_polls.go).

// unsuccessfulPoll is what the lookout learns of it.
type unsuccessfulPoll struct {
	deadlock.Call
	dependsOn []int       // ranks that it depends on, perhaps more than Call says
	ready     func() bool // with the engine's lock: it would not be in vain now; nil if nobody knows
}

func newUnsuccessfulPoll(d deadlock.Call, over func() bool) *unsuccessfulPoll {
	return &unsuccessfulPoll{d, d.For, over}
}

// OnPoll implements engine.PollObserver.
func (r *Request) OnPoll(p *engine.PollStats) {
	if p != nil && !r.isInactive() && p.FirstInRound(&r.pollRound) {
		r.notePoll(p)
	}
}

func (r *Request) notePoll(p *engine.PollStats) {
	if r.background.doneCh != nil {
		p.Add(&r.background, nil)
		return
	}
	p.Add(r, newUnsuccessfulPoll(r.describeWait(), readyFunc([]*Request{r}, newAllRequests)))
}

// readyFunc asks several requests as ready does, unless one is persistent: the program may
// have begun it again. Calls in the background are left out.
func readyFunc[W engine.Waitable](rs []*Request, ready func([]*Request) W) func() bool {
	var kept []*Request // rs is the program's
	for _, r := range rs {
		switch {
		case r == nil || r.background.doneCh != nil:
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

// OnPoll implements engine.PollObserver. Requests that are polled in different company are
// noted again.
func (s *anyRequest) OnPoll(p *engine.PollStats) {
	known := true
	for _, r := range s.rs {
		known = known && (r == nil || r.pollRound == p.Round())
	}
	if known {
		return
	}
	if first := firstNewRequest(p, s.rs, func(r *Request) *uint64 { return &r.pollRound }); first != nil {
		p.Add(anyOfKey{first}, describePolled("TestAny", s.rs, true, readyFunc(s.rs, newAnyRequest)))
	}
}

// OnPoll implements engine.PollObserver.
func (a allRequests) OnPoll(p *engine.PollStats) {
	known := true
	for _, r := range a {
		known = known && (r == nil || r.pollRoundAll == p.Round())
	}
	if known {
		return
	}
	if first := firstNewRequest(p, a, func(r *Request) *uint64 { return &r.pollRoundAll }); first != nil {
		p.Add(allOfKey{first}, describePolled("TestAll", a, false, readyFunc(a, newAllRequests)))
	}
}

// firstNewRequest is the first of several requests that are not done whose round is another, and
// notes the round. Calls in the background are noted as what they are.
func firstNewRequest(p *engine.PollStats, rs []*Request, round func(*Request) *uint64) (first *Request) {
	for _, r := range rs {
		switch {
		case r == nil || !p.FirstInRound(round(r)) || r.isInactive() || r.Ready():
		case r.background.doneCh != nil:
			r.notePoll(p)
		case first == nil:
			first = r
		}
	}
	return first
}

// describePolled describes requests of which one is enough, or all are needed. Calls in the
// background are not among them.
func describePolled(name string, rs []*Request, any bool, over func() bool) *unsuccessfulPoll {
	d := &unsuccessfulPoll{Call: deadlock.Call{Any: any}, ready: over}
	n, known := 0, true
	for _, r := range rs {
		if r.isInactive() || r.background.doneCh != nil || r.Ready() {
			continue
		}
		if n++; n == 1 {
			one := r.describeWait()
			d.What, d.Comm = one.What, one.Comm
		}
		ranks, enough := r.pendingRanks()
		known = known && len(ranks) > 0
		d.dependsOn = append(d.dependsOn, ranks...)
		if any || !enough || len(ranks) == 1 { // of several that are all needed any of many ranks is left out
			d.For = append(d.For, ranks...)
		}
	}
	d.What = describeSeveral(name, d.What, n)
	for _, list := range []*[]int{&d.dependsOn, &d.For} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if any && !known {
		d.For, d.Any = nil, false
	}
	return d
}

func newAnyRequest(rs []*Request) *anyRequest  { return &anyRequest{rs: rs} }
func newAllRequests(rs []*Request) allRequests { return rs }

// maxProbePolls is how many kinds of probes of a communicator are told apart.
const maxProbePolls = 64

// probePolls are those of a communicator that have found nothing in a round. The engine's
// lock guards them.
type probePolls struct {
	round uint64
	last  match.Envelope
	seen  map[match.Envelope]bool
}

type probeKey struct {
	c       *Comm
	pattern match.Envelope
}

// OnPoll implements engine.PollObserver.
func (s *probeWait) OnPoll(p *engine.PollStats) {
	x := &s.comm.probePolls
	switch {
	case x.seen == nil:
		x.seen = map[match.Envelope]bool{}
	case x.round != p.Round():
		clear(x.seen)
	case x.last == s.envelope || x.seen[s.envelope]:
		return
	}
	x.round, x.last = p.Round(), s.envelope
	if p.HasRoom(len(x.seen) < maxProbePolls) {
		x.seen[s.envelope] = true
		d := s.describeWait()
		d.What = "Iprobe" + strings.TrimPrefix(d.What, "Probe")
		p.Add(probeKey{s.comm, s.envelope}, newUnsuccessfulPoll(d, func() bool {
			return s.core.Probe(s.envelope, false) != nil || s.core.SourceError(s.envelope, s.comm.worldRanks) != nil
		}))
	}
}

// OnPoll implements engine.PollObserver.
func (x *winWait) OnPoll(p *engine.PollStats) {
	if x.pollRound != nil && p.FirstInRound(x.pollRound) {
		p.Add(x.pollRound, newUnsuccessfulPoll(x.describeWait(), func() bool { return x.w.broken != nil || x.condition() }))
	}
}

// internalTest is asked for by this package for its own sake.
type internalTest struct{ engine.Waitable }

var _ = []engine.PollObserver{&Request{}, &anyRequest{}, allRequests{}, &probeWait{}, &winWait{}}
