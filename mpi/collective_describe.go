package mpi

import (
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// DescribeWait implements deadlock.Describer: a collective call waits for the senders of messages
// that have not arrived and for the receivers of messages that are not done.
func (n *callNet) DescribeWait() deadlock.Call {
	k := n.call
	at := k.collectivePosition()
	d := deadlock.Call{What: at.String(), Comm: n.comm.Name(), Collective: &at, Unmet: true}
	d.Aside = k.isUnattended()
	for _, r := range n.waiting {
		m := r.(*netMessage)
		switch {
		case m.p.Done:
		case m.p.Dest < 0: // receive of the shared queue, from any rank
			all, _ := n.comm.base.SourceRanks(match.Envelope{Source: match.Any})
			d.For, d.Any = append(d.For, all...), true
		case m.writer > 0:
			d.For = append(d.For, n.comm.base.WorldRank(m.writer-1))
		case m.receive:
			d.For = append(d.For, int(m.p.Envelope.Source))
		default:
			d.For = append(d.For, m.p.Dest)
		}
	}
	slices.Sort(d.For)
	d.For = slices.Compact(d.For)
	if self := slices.Index(d.For, n.comm.base.Engine.Rank()); self >= 0 && d.Any {
		d.For = slices.Delete(d.For, self, self+1)
	}
	return d
}

// ProbeCall implements deadlock.Prober.
func (n *callNet) ProbeCall() (contextID uint32, payload []byte) {
	if n.callSignature() == 0 || n.comm.fixedTag != 0 {
		return 0, nil
	}
	return n.comm.base.ContextID, n.call.encodeProbe()
}

// PollKey implements deadlock.Background.
func (n *callNet) PollKey() any { return n.call.background }

// PollKey implements deadlock.Background.
func (t queueTurn) PollKey() any { return t.background }

// collectivePosition returns the call with its number in the sequence of its communicator.
func (k *call) collectivePosition() deadlock.Collective {
	c := k.comm
	at := deadlock.Collective{Comm: c.base.ContextID, Ranks: c.base.RanksHash(), Name: c.Name(), Seq: uint32(k.net.tag) & maxSeq, What: k.op.callName()}
	if r := k.newRecord(); !r.Refused {
		at.With = strings.TrimSpace(strings.TrimPrefix(r.String(), at.What))
	}
	return at
}

// lastCollective returns the last collective call that this rank has started.
func (c *Comm) lastCollective() (at deadlock.Collective, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq == 0 {
		return at, false
	}
	return deadlock.Collective{Comm: c.base.ContextID, Ranks: c.base.RanksHash(), Name: c.Name(), Seq: c.seq & maxSeq, What: c.lastCall, Begun: true}, true
}

var _ = []deadlock.Describer{&callNet{}, queueTurn{}}

var _ coll.Net = &callNet{}
