package mpi

import (
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// A condition that a program polls without success describes itself to the engine
// (engine.PollObserver), once between two samples, in the words of a wait. The description is made at
// once, in the polling goroutine, because the request may be reused a moment later. The key
// identifies the condition: for a nonblocking collective call it is its *backgroundCall, whose
// goroutine describes the wait (poll_tracker.go).

// unsuccessfulPoll describes a polled condition that was not ready.
type unsuccessfulPoll struct {
	deadlock.Call
	dependsOn []int       // ranks to probe, a superset of Call.For
	ready     func() bool // called with the engine's lock: the condition is ready now; nil if unknown
}

// newUnsuccessfulPoll returns the description of a condition that depends on the ranks in d.
func newUnsuccessfulPoll(d deadlock.Call, done func() bool) *unsuccessfulPoll {
	return &unsuccessfulPoll{d, d.For, done}
}

// polledRequest is a Request that the program tests. It adds the engine's callback to the
// exported type.
type polledRequest Request

// Ready implements engine.Waitable.
func (q *polledRequest) Ready() bool { return (*Request)(q).isDone() }

// OnPoll implements engine.PollObserver.
func (q *polledRequest) OnPoll(p *engine.PollStats) {
	r := (*Request)(q)
	if p != nil && !r.isInactive() && p.FirstInRound(&r.pollRound) {
		r.notePoll(p)
	}
}

// notePoll adds the request to the polls of the round.
func (r *Request) notePoll(p *engine.PollStats) {
	if r.background.doneCh != nil {
		p.Add(&r.background, nil)
		return
	}
	p.Add(r, newUnsuccessfulPoll(r.describeWait(), readyFunc([]*Request{r}, newAllRequests)))
}

// readyFunc returns a function that tests several requests, nil if one is persistent, because
// the program may have restarted it. It leaves out nonblocking collective calls.
func readyFunc[W engine.Waitable](rs []*Request, ready func([]*Request) W) func() bool {
	var kept []*Request // the caller may reuse rs
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

// anyOfKey and allOfKey are the keys of TestAny and TestAll: the first request that is new in
// the round. It may also be polled alone.
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

// firstNewRequest returns the first request that is not done and new in the round, and marks
// all as seen. It adds nonblocking collective calls separately.
func firstNewRequest(p *engine.PollStats, rs []*Request, round func(*Request) *uint64) (first *Request) {
	for _, r := range rs {
		switch {
		case r == nil || !p.FirstInRound(round(r)) || r.isInactive() || r.isDone():
		case r.background.doneCh != nil:
			r.notePoll(p)
		case first == nil:
			first = r
		}
	}
	return first
}

// describePolled describes several requests, of which any or all are needed. It leaves out
// nonblocking collective calls.
func describePolled(name string, rs []*Request, any bool, done func() bool) *unsuccessfulPoll {
	d := &unsuccessfulPoll{Call: deadlock.Call{Any: any}, ready: done}
	n, known := 0, true
	for _, r := range rs {
		if r.isInactive() || r.background.doneCh != nil || r.isDone() {
			continue
		}
		if n++; n == 1 {
			one := r.describeWait()
			d.What, d.Comm = one.What, one.Comm
		}
		ranks, enough := r.pendingRanks()
		known = known && len(ranks) > 0
		d.dependsOn = append(d.dependsOn, ranks...)
		if any || !enough || len(ranks) == 1 { // in TestAll a receive from any of many ranks is left out
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

// maxProbePolls is the maximum number of different envelopes of Iprobe recorded for a
// communicator in a round.
const maxProbePolls = 64

// probePolls are the unsuccessful Iprobe calls of a communicator in a round. The engine's lock
// guards them.
type probePolls struct {
	round uint64
	last  match.Envelope
	seen  map[match.Envelope]bool
}

// probeKey is the key of an Iprobe.
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

var _ = []engine.PollObserver{&polledRequest{}, &anyRequest{}, allRequests{}, &probeWait{}, &winWait{}}
