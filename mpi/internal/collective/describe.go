package collective

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// DescribeWait implements deadlock.Describer: a collective call waits for the senders of messages
// that have not arrived and for the receivers of messages that are not done.
func (n *callNet) DescribeWait() deadlock.Call {
	at := n.position()
	d := deadlock.Call{What: at.String(), Comm: n.comm.Name(), Collective: &at, Unmet: true}
	d.Aside = n.isUnattended()
	for _, r := range n.waiting {
		m := r.(*netMessage)
		switch {
		case m.p.Done:
		case m.p.Dest < 0: // receive of the shared queue, from any rank
			all, _ := n.comm.SourceRanks(match.Envelope{Source: match.Any})
			d.For, d.Any = append(d.For, all...), true
		case m.writer > 0:
			d.For = append(d.For, n.comm.WorldRank(m.writer-1))
		case m.receive:
			d.For = append(d.For, int(m.p.Envelope.Source))
		default:
			d.For = append(d.For, m.p.Dest)
		}
	}
	slices.Sort(d.For)
	d.For = slices.Compact(d.For)
	if self := slices.Index(d.For, n.comm.Engine.Rank()); self >= 0 && d.Any {
		d.For = slices.Delete(d.For, self, self+1)
	}
	return d
}

// DescribeWait implements deadlock.Describer. Until the call before has completed, the ranks that
// this one will wait for are not known, except that they are other ranks.
func (t queueTurn) DescribeWait() deadlock.Call {
	at, c := t.net.position(), t.net.comm
	d := deadlock.Call{What: at.String(), Comm: c.Name(), Collective: &at, Aside: t.net.isUnattended(), Any: true,
		Why: fmt.Sprintf("after call #%d", c.callQueue.front().number)}
	all, _ := c.SourceRanks(match.Envelope{Source: match.Any})
	for _, rank := range all {
		if rank != c.Engine.Rank() {
			d.For = append(d.For, rank)
		}
	}
	return d
}

// ProbeCall implements deadlock.Prober.
func (n *callNet) ProbeCall() (contextID uint32, payload []byte) {
	if n.callSignature() == 0 || n.comm.fixedTag != 0 {
		return 0, nil
	}
	return n.comm.ContextID, n.encodeProbe()
}

// PollKey implements deadlock.Background.
func (n *callNet) PollKey() any { return n.background }

// PollKey implements deadlock.Background.
func (t queueTurn) PollKey() any { return t.net.background }

// position returns the call with its number in the sequence of its communicator.
func (n *callNet) position() deadlock.Collective {
	c := n.comm
	at := deadlock.Collective{Comm: c.ContextID, Ranks: c.RanksHash(), Name: c.Name(), Seq: n.number, What: n.op.Name()}
	if r := n.op.newRecord(c.Size); !r.Refused {
		at.With = strings.TrimSpace(strings.TrimPrefix(r.String(), at.What))
	}
	return at
}

// lastCollective returns the last call that this rank has started.
func (c *Comm) lastCollective() (at deadlock.Collective, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq == 0 {
		return at, false
	}
	return deadlock.Collective{Comm: c.ContextID, Ranks: c.RanksHash(), Name: c.Name(), Seq: c.seq & maxSeq, What: c.lastCall, Begun: true}, true
}

// LastCalls returns the last collective call of each communicator in use, at most limit.
func (j *Job) LastCalls(limit int) (list []deadlock.Collective) {
	for _, c := range j.comms.all() {
		if at, ok := c.lastCollective(); ok && !c.Freed.Load() && len(list) < limit {
			list = append(list, at)
		}
	}
	return list
}

// DescribeLastCall describes the last call of this rank, a send to peer or a receive, or a
// collective call of which that was a message. It returns "" if the communicator is unknown.
func (j *Job) DescribeLastCall(send bool, peer int, e match.Envelope) string {
	c := j.comms.get(e.Context &^ 1)
	switch {
	case c == nil:
		return ""
	case e.Context&1 != 0:
		if at, ok := c.lastCollective(); ok {
			return at.String()
		}
		return "a collective call"
	case send:
		return fmt.Sprintf("Send(dest %s, tag %d)", c.DescribeRank(int32(peer)), e.Tag)
	}
	return fmt.Sprintf("Recv(source %s, tag %s)", c.DescribeRank(e.Source), comm.DescribeNumber(int(e.Tag)))
}

// DescribeMessage describes a message, a receive or a send without a match by its communicator
// and its call. It reports false for a message that only wakes a rank that waits in shared
// memory, whose wait describes itself.
func (j *Job) DescribeMessage(e match.Envelope, from, to, bytes int) (m deadlock.Message, ok bool) {
	m = deadlock.Message{From: from, To: to, Tag: int(e.Tag), Bytes: int64(bytes)}
	c := j.comms.get(e.Context &^ 1)
	switch {
	case e.Context&1 != 0 && e.Tag == wakeTag:
		return m, false
	case c == nil:
		m.Comm = fmt.Sprintf("unknown communicator %d", e.Context&^1)
	case e.Context&1 != 0:
		m.Comm, m.Call = c.Name(), uint32(e.Tag)&maxSeq
	default:
		m.Comm = c.Name()
		if j.Check {
			m.Bytes = max(0, m.Bytes-datatype.SignatureSize)
		}
	}
	return m, true
}

var _ = []deadlock.Describer{&callNet{}, queueTurn{}}

var _ coll.Net = &callNet{}
