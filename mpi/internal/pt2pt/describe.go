package pt2pt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A condition that a program polls without success describes itself to the engine
// (engine.PollObserver), once between two samples, in the words of a wait. The description is
// made at once, in the polling goroutine, because the request may be reused a moment later. The
// key identifies the condition: for a nonblocking collective call its *collective.Background, whose
// goroutine describes the wait.

// sendStages describe the reason for which a send waits.
var sendStages = map[protocol.Stage]string{protocol.Unsent: "send queue full", protocol.Unmatched: "receive not posted", protocol.Transferring: "in flight"}

// DescribeWait describes the wait for the request. It implements deadlock.Describer.
func (r *Request) DescribeWait() deadlock.Call {
	c, p := r.comm, &r.p
	if r.partitioned != nil && !r.neverStarted {
		return r.partitioned.describeWait()
	}
	d := deadlock.Call{What: r.op, Comm: c.Name()}
	d.For, d.Any = r.pendingRanks()
	if r.rmaResult != nil && len(d.For) > 0 {
		d.What += fmt.Sprintf("(target %s)", c.DescribeRank(int32(d.For[0])))
	}
	if r.neverStarted || r.background != nil || r.rmaResult != nil {
		return d
	}
	stage := p.Stage()
	d.Unmet = stage != protocol.Transferring
	if r.op == opReceive {
		d.What = fmt.Sprintf("Recv(source %s, tag %s)", c.DescribeRank(p.Envelope.Source), comm.DescribeNumber(int(p.Envelope.Tag)))
		if !d.Unmet {
			d.Why = fmt.Sprintf("%d bytes with tag %d in flight", p.Bytes, p.Received.Tag)
		}
		return d
	}
	name := "Send"
	if p.Sync {
		name = "Ssend"
	}
	d.What = fmt.Sprintf("%s(%d bytes, dest %s, tag %d)", name, len(p.Buf)-c.job.signatureSize(), c.DescribeRank(int32(p.Dest)), p.Envelope.Tag)
	d.Why = sendStages[stage]
	return d
}

// pendingRanks returns the ranks of the job that a request waits for, none if they are unknown,
// and whether any one of them is enough.
func (r *Request) pendingRanks() (ranks []int, any bool) {
	switch {
	case r.neverStarted || r.background != nil || r.rmaResult != nil && r.rmaResult.Done:
		return nil, false
	case r.partitioned != nil:
		return r.partitioned.describeWait().For, false
	case r.rmaResult != nil:
		return []int{r.comm.WorldRank(r.rmaResult.Target)}, false
	case r.op != opReceive:
		return []int{r.p.Dest}, false
	case r.p.Stage() == protocol.Transferring:
		return []int{int(r.p.Received.Source)}, false
	}
	return r.comm.SourceRanks(r.p.Envelope)
}

// describeRequests describes several requests, of which any or all are needed. polled leaves out
// nonblocking collective calls, whose goroutines describe them.
func describeRequests(name string, rs []*Request, any, polled bool) *deadlock.Poll {
	d := &deadlock.Poll{Call: deadlock.Call{Any: any}}
	var pending []*Request // the caller may reuse rs
	known, persistent := true, false
	for _, r := range rs {
		if r.isInactive() || r.Ready() || polled && r.background != nil {
			continue
		}
		ranks, enough := r.pendingRanks()
		pending, known, persistent = append(pending, r), known && len(ranks) > 0, persistent || r.persistent
		d.DependsOn = append(d.DependsOn, ranks...)
		if any || !enough || len(ranks) == 1 { // of all requests, a receive from any of many ranks is left out
			d.For = append(d.For, ranks...)
		}
	}
	if len(pending) > 0 {
		d.What, d.Comm = pending[0].DescribeWait().What, pending[0].comm.Name()
	}
	if len(pending) > 1 {
		d.What += fmt.Sprintf(" and %d more", len(pending)-1)
	}
	d.What = name + "(" + d.What + ")"
	for _, list := range []*[]int{&d.DependsOn, &d.For} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if any && !known {
		d.For, d.Any = nil, false
	}
	if d.Ready = allRequests(pending).Ready; any {
		d.Ready = (&anyRequest{rs: pending}).Ready
	}
	if persistent { // the program may start it anew at any time
		d.Ready = nil
	}
	return d
}

// polledRequest is a Request that the program tests by Test. Other tests are not recorded.
type polledRequest Request

// Ready implements engine.Waitable.
func (q *polledRequest) Ready() bool { return (*Request)(q).Ready() }

// OnPoll implements engine.PollObserver.
func (q *polledRequest) OnPoll(p *engine.PollStats) {
	r := (*Request)(q)
	if !p.FirstInRound(&r.pollRound) {
		return
	}
	if r.background != nil {
		p.Add(r.background, nil)
		return
	}
	d := deadlock.NewPoll(r.DescribeWait(), r.Ready)
	if r.persistent { // the program may start it anew at any time
		d.Ready = nil
	}
	p.Add(r, d)
}

// recordPolls records requests that are polled together, unless all have been polled in this
// round. The key is the first one that is new in the round.
func recordPolls(p *engine.PollStats, name string, rs []*Request, any bool) {
	var first *Request
	for _, r := range rs {
		switch {
		case r == nil || !p.FirstInRound(&r.pollRound) || r.isInactive() || r.Ready():
		case r.background != nil:
			p.Add(r.background, nil)
		case first == nil:
			first = r
		}
	}
	if first != nil {
		p.Add(first, describeRequests(name, rs, any, true))
	}
}

// OnPoll implements engine.PollObserver.
func (s *anyRequest) OnPoll(p *engine.PollStats) { recordPolls(p, "TestAny", s.rs, true) }

// OnPoll implements engine.PollObserver.
func (a allRequests) OnPoll(p *engine.PollStats) { recordPolls(p, "TestAll", a, false) }

// OnPoll implements engine.PollObserver.
func (s *probe) OnPoll(p *engine.PollStats) {
	if !p.FirstProbeInRound(s.envelope) {
		return
	}
	d := s.DescribeWait()
	d.What = "Iprobe" + strings.TrimPrefix(d.What, "Probe")
	p.Add(s.envelope, deadlock.NewPoll(d, func() bool {
		return s.core.Probe(s.envelope, false) != nil || s.core.SourceError(s.envelope, s.comm.WorldRanks) != nil
	}))
}

// DescribeWait implements deadlock.Describer.
func (s *anyRequest) DescribeWait() deadlock.Call {
	return describeRequests("WaitAny", s.rs, true, false).Call
}

// DescribeWait implements deadlock.Describer.
func (s *probe) DescribeWait() deadlock.Call {
	d := deadlock.Call{What: fmt.Sprintf("Probe(source %s, tag %s)", s.comm.DescribeRank(s.envelope.Source), comm.DescribeNumber(int(s.envelope.Tag))), Comm: s.comm.Name(), Unmet: true}
	d.For, d.Any = s.comm.SourceRanks(s.envelope)
	return d
}

var _ = []deadlock.Describer{&Request{}, &probe{}, &anyRequest{}}

var _ = []engine.PollObserver{&polledRequest{}, &anyRequest{}, allRequests{}, &probe{}}
