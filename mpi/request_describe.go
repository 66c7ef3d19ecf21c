package mpi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A condition that a program polls without success describes itself to the engine
// (engine.PollObserver), once between two samples, in the words of a wait. The description is made at
// once, in the polling goroutine, because the request may be reused a moment later. The key
// identifies the condition: for a nonblocking collective call it is its *background, whose
// goroutine describes the wait (poll_tracker.go).

// describe describes the wait for the request.
func (r *Request) describe() deadlock.Call {
	c, p := r.comm, &r.p
	d := deadlock.Call{What: r.op, Comm: c.Name()}
	d.For, d.Any = r.pendingRanks()
	if len(d.For) > 0 && r.rmaResult != nil {
		d.What += fmt.Sprintf("(target %s)", c.base.DescribeRank(int32(c.base.WorldRank(r.rmaResult.target))))
	}
	if r.neverStarted || r.background != nil || r.rmaResult != nil {
		return d
	}
	stage := p.Stage()
	d.Unmet = stage != protocol.Transferring
	if r.op == "receive" {
		d.What = fmt.Sprintf("Recv(source %s, tag %s)", c.base.DescribeRank(p.Envelope.Source), comm.DescribeNumber(int(p.Envelope.Tag)))
		if !d.Unmet {
			d.Why = fmt.Sprintf("%d bytes with tag %d in flight", p.Bytes, p.Received.Tag)
		}
		return d
	}
	name := "Send"
	if p.Sync {
		name = "Ssend"
	}
	d.What = fmt.Sprintf("%s(%d bytes, dest %s, tag %d)", name, len(p.Buf)-c.world.checkOverhead(), c.base.DescribeRank(int32(p.Dest)), p.Envelope.Tag)
	switch stage {
	case protocol.Unsent:
		d.Why = "send queue full"
	case protocol.Unmatched:
		d.Why = "receive not posted"
	case protocol.Transferring:
		d.Why = "in flight"
	}
	return d
}

// pendingRanks returns the ranks of the job that a request waits for, none if they are unknown,
// and whether any one of them is enough.
func (r *Request) pendingRanks() (ranks []int, any bool) {
	switch {
	case r.neverStarted || r.background != nil || r.rmaResult != nil && r.rmaResult.done:
		return nil, false
	case r.rmaResult != nil:
		return []int{r.comm.base.WorldRank(r.rmaResult.target)}, false
	case r.op != "receive":
		return []int{r.p.Dest}, false
	case r.p.Stage() == protocol.Transferring:
		return []int{int(r.p.Received.Source)}, false
	}
	return r.comm.base.SourceRanks(r.p.Envelope)
}

// describeSeveral describes n requests of which one is described.
func describeSeveral(name, one string, n int) string {
	if n > 1 {
		one += fmt.Sprintf(" and %d more", n-1)
	}
	return name + "(" + one + ")"
}

// DescribeWait implements deadlock.Describer.
func (s *probeWait) DescribeWait() deadlock.Call {
	d := deadlock.Call{What: fmt.Sprintf("Probe(source %s, tag %s)", s.comm.base.DescribeRank(s.envelope.Source), comm.DescribeNumber(int(s.envelope.Tag))), Comm: s.comm.Name(), Unmet: true}
	d.For, d.Any = s.comm.base.SourceRanks(s.envelope)
	return d
}

// DescribeWait implements deadlock.Describer.
func (s *anyRequest) DescribeWait() deadlock.Call {
	d := deadlock.Call{Any: true}
	n, all := 0, true
	for _, r := range s.rs {
		if r.isInactive() {
			continue
		}
		one := r.describe()
		if n++; n == 1 {
			d.What, d.Comm = one.What, one.Comm
		}
		all = all && len(one.For) > 0
		d.For = append(d.For, one.For...)
	}
	d.What = describeSeveral("WaitAny", d.What, n)
	slices.Sort(d.For)
	if d.For = slices.Compact(d.For); !all { // the ranks of one request are unknown
		d.For, d.Any = nil, false
	}
	return d
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
	if r.background != nil {
		p.Add(r.background, nil)
		return
	}
	p.Add(r, deadlock.NewPoll(r.describe(), readyFunc([]*Request{r}, newAllRequests)))
}

// readyFunc returns a function that tests several requests, nil if one is persistent, because
// the program may have restarted it. It leaves out nonblocking collective calls.
func readyFunc[W engine.Waitable](rs []*Request, ready func([]*Request) W) func() bool {
	var kept []*Request // the caller may reuse rs
	for _, r := range rs {
		switch {
		case r == nil || r.background != nil:
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
		case r.background != nil:
			r.notePoll(p)
		case first == nil:
			first = r
		}
	}
	return first
}

// describePolled describes several requests, of which any or all are needed. It leaves out
// nonblocking collective calls.
func describePolled(name string, rs []*Request, any bool, done func() bool) *deadlock.Poll {
	d := &deadlock.Poll{Call: deadlock.Call{Any: any}, Ready: done}
	n, known := 0, true
	for _, r := range rs {
		if r.isInactive() || r.background != nil || r.isDone() {
			continue
		}
		if n++; n == 1 {
			one := r.describe()
			d.What, d.Comm = one.What, one.Comm
		}
		ranks, enough := r.pendingRanks()
		known = known && len(ranks) > 0
		d.DependsOn = append(d.DependsOn, ranks...)
		if any || !enough || len(ranks) == 1 { // in TestAll a receive from any of many ranks is left out
			d.For = append(d.For, ranks...)
		}
	}
	d.What = describeSeveral(name, d.What, n)
	for _, list := range []*[]int{&d.DependsOn, &d.For} {
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
		d := s.DescribeWait()
		d.What = "Iprobe" + strings.TrimPrefix(d.What, "Probe")
		p.Add(probeKey{s.comm, s.envelope}, deadlock.NewPoll(d, func() bool {
			return s.core.Probe(s.envelope, false) != nil || s.core.SourceError(s.envelope, s.comm.base.WorldRanks) != nil
		}))
	}
}

var _ = []deadlock.Describer{&requestWait{}, &probeWait{}, &anyRequest{}}

var _ = []engine.PollObserver{&polledRequest{}, &anyRequest{}, allRequests{}, &probeWait{}}
