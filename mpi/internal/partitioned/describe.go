package partitioned

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
)

// DescribeWait describes the wait for the send. It implements deadlock.Describer.
func (s *Send) DescribeWait() deadlock.Call {
	d := deadlock.Call{What: fmt.Sprintf("Psend(%d partitions, dest %s, tag %d)", len(s.ready), s.comm.DescribeRank(int32(s.dest)), s.tag), Comm: s.comm.Name()}
	switch {
	case s.nReady < len(s.ready): // the program of this rank marks them
		d.Why = fmt.Sprintf("%d partitions not ready", len(s.ready)-s.nReady)
	case !s.open:
		d.For, d.Unmet, d.Why = []int{s.dest}, true, "receive not started"
	case !s.direct:
		d.For, d.Unmet, d.Why = []int{s.dest}, true, "not received"
	default:
		d.For, d.Why = []int{s.dest}, "in flight"
	}
	return d
}

// DescribeWait describes the wait for the receive. It implements deadlock.Describer.
func (r *Recv) DescribeWait() deadlock.Call {
	d := deadlock.Call{What: fmt.Sprintf("Precv(%d partitions, source %s, tag %d)", len(r.parts), r.comm.DescribeRank(int32(r.source)), r.tag), Comm: r.comm.Name()}
	d.For, d.Unmet = []int{r.source}, true
	switch {
	case r.offer == nil:
		d.Why = "send not initialized"
	case r.open:
		d.Why = fmt.Sprintf("%d of %d partitions of the sender missing", r.left, len(r.arrived))
	}
	return d
}

// OnPoll implements engine.PollObserver.
func (p *partition) OnPoll(s *engine.PollStats) {
	if !s.FirstInRound(&p.r.pollRound) {
		return
	}
	d := deadlock.NewPoll(p.r.DescribeWait(), nil) // the program may start it anew at any time
	d.What = "Parrived(" + d.What + ")"
	s.Add(p.r, d)
}

var _ = []deadlock.Describer{&Send{}, &Recv{}}

var _ engine.PollObserver = &partition{}
