package mpi

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// waitDescriber is a waitable that describes itself for reports. The detector calls it with the
// engine's lock held while a goroutine waits.
type waitDescriber interface{ describeWait() deadlock.Call }

// anyOrNumber returns a rank or a tag as text.
func anyOrNumber(n int) string {
	if n == match.Any {
		return "any"
	}
	return fmt.Sprint(n)
}

// sourceRanks returns the ranks of the job from which a receive or a probe may match, and
// whether any one of them is enough.
func (c *Comm) sourceRanks(e match.Envelope) (ranks []int, any bool) {
	if e.Source != match.Any {
		return []int{int(e.Source)}, false
	}
	if c.worldRanks != nil {
		return c.worldRanks, true
	}
	return ranksBelow(c.size), true
}

// describeRank returns the rank in the communicator of a rank of the job, and its rank in the
// job if that differs.
func (c *Comm) describeRank(job int32) string {
	here := c.localRank(int(job))
	if c.worldRanks == nil || job < 0 || here == int(job) {
		return anyOrNumber(here)
	}
	return fmt.Sprintf("%d, rank %d of the job", here, job)
}

// describeWait implements describer.
func (r *Request) describeWait() deadlock.Call {
	c, p := r.comm, &r.p
	d := deadlock.Call{What: r.op, Comm: c.Name()}
	d.For, d.Any = r.pendingRanks()
	if len(d.For) > 0 && r.rmaResult != nil {
		d.What += fmt.Sprintf("(target %s)", c.describeRank(int32(c.worldRank(r.rmaResult.target))))
	}
	if r.neverStarted || r.background.doneCh != nil || r.rmaResult != nil {
		return d
	}
	stage := p.Stage()
	d.Unmet = stage != protocol.Transferring
	if r.op == "receive" {
		d.What = fmt.Sprintf("Recv(source %s, tag %s)", c.describeRank(p.Envelope.Source), anyOrNumber(int(p.Envelope.Tag)))
		if !d.Unmet {
			d.Why = fmt.Sprintf("%d bytes with tag %d in flight", p.Bytes, p.Received.Tag)
		}
		return d
	}
	name := "Send"
	if p.Sync {
		name = "Ssend"
	}
	d.What = fmt.Sprintf("%s(%d bytes, dest %s, tag %d)", name, len(p.Buf)-c.world.checkOverhead(), c.describeRank(int32(p.Dest)), p.Envelope.Tag)
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
	case r.neverStarted || r.background.doneCh != nil || r.rmaResult != nil && r.rmaResult.done:
		return nil, false
	case r.rmaResult != nil:
		return []int{r.comm.worldRank(r.rmaResult.target)}, false
	case r.op != "receive":
		return []int{r.p.Dest}, false
	case r.p.Stage() == protocol.Transferring:
		return []int{int(r.p.Received.Source)}, false
	}
	return r.comm.sourceRanks(r.p.Envelope)
}

// describeSeveral describes n requests of which one is described.
func describeSeveral(name, one string, n int) string {
	if n > 1 {
		one += fmt.Sprintf(" and %d more", n-1)
	}
	return name + "(" + one + ")"
}

// describeWait implements describer.
func (s *probeWait) describeWait() deadlock.Call {
	d := deadlock.Call{What: fmt.Sprintf("Probe(source %s, tag %s)", s.comm.describeRank(s.envelope.Source), anyOrNumber(int(s.envelope.Tag))), Comm: s.comm.Name(), Unmet: true}
	d.For, d.Any = s.comm.sourceRanks(s.envelope)
	return d
}

// describeWait implements waitDescriber.
func (s *anyRequest) describeWait() deadlock.Call {
	d := deadlock.Call{Any: true}
	n, all := 0, true
	for _, r := range s.rs {
		if r.isInactive() {
			continue
		}
		one := r.describeWait()
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

// describeWait implements waitDescriber: a collective call waits for the senders of messages
// that have not arrived and for the receivers of messages that are not done.
func (n *callNet) describeWait() deadlock.Call {
	k := n.call
	at := k.collectivePosition()
	d := deadlock.Call{What: at.String(), Comm: n.comm.Name(), Collective: &at, Unmet: true}
	d.Aside = k.isUnattended()
	for _, r := range n.waiting {
		m := r.(*netMessage)
		switch {
		case m.p.Done:
		case m.p.Dest < 0: // receive of the shared queue, from any rank
			all, _ := n.comm.sourceRanks(match.Envelope{Source: match.Any})
			d.For, d.Any = append(d.For, all...), true
		case m.writer > 0:
			d.For = append(d.For, n.comm.worldRank(m.writer-1))
		case m.receive:
			d.For = append(d.For, int(m.p.Envelope.Source))
		default:
			d.For = append(d.For, m.p.Dest)
		}
	}
	slices.Sort(d.For)
	d.For = slices.Compact(d.For)
	if self := slices.Index(d.For, n.comm.eng.Rank()); self >= 0 && d.Any {
		d.For = slices.Delete(d.For, self, self+1)
	}
	return d
}

// collectivePosition returns the call with its number in the sequence of its communicator.
func (k *call) collectivePosition() deadlock.Collective {
	c := k.comm
	at := deadlock.Collective{Comm: c.contextID, Ranks: c.ranksHash(), Name: c.Name(), Seq: uint32(k.net.tag) & maxSeq, What: k.op.callName()}
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
	return deadlock.Collective{Comm: c.contextID, Ranks: c.ranksHash(), Name: c.Name(), Seq: c.seq & maxSeq, What: c.lastCall, Begun: true}, true
}

// ranksHash returns a hash of the members. It distinguishes communicators with the same context
// id at different ranks.
func (c *Comm) ranksHash() uint64 {
	h := fnv.New64a()
	for r := range c.size {
		fmt.Fprintln(h, c.worldRank(r))
	}
	return h.Sum64()
}

// describeWait implements describer.
func (x *winWait) describeWait() deadlock.Call {
	d := deadlock.Call{What: x.callName, Comm: x.w.Name(), Any: x.any}
	switch len(x.targets) {
	case 0:
	case 1:
		d.What += fmt.Sprintf("(target %s)", x.w.comm.describeRank(int32(x.w.comm.worldRank(x.targets[0]))))
	default:
		d.What += fmt.Sprintf("(%d ranks)", len(x.targets))
	}
	suspects := x.suspects
	if suspects == nil && x.any { // any other rank
		suspects = slices.DeleteFunc(x.w.allRanks(), func(r int) bool { return r == x.w.comm.rank })
	}
	for _, r := range suspects {
		if x.isPending == nil || x.isPending(r) {
			d.For = append(d.For, x.w.comm.worldRank(r))
		}
	}
	return d
}

// describeMessage describes a message, a receive or a send without a match.
func (j *job) describeMessage(e match.Envelope, from, to int, bytes int) deadlock.Message {
	m := deadlock.Message{From: from, To: to, Tag: int(e.Tag), Bytes: int64(bytes)}
	c := j.comms.get(e.Context &^ 1)
	switch {
	case c == nil:
		m.Comm = fmt.Sprintf("unknown communicator %d", e.Context&^1)
	case e.Context&1 != 0:
		m.Comm, m.Call = c.Name(), uint32(e.Tag)&maxSeq
	default:
		m.Comm = c.Name()
		m.Bytes = max(0, m.Bytes-int64(j.checkOverhead()))
	}
	return m
}

// isWakeMessage reports whether a message only wakes a rank that waits in shared memory, whose
// wait describes itself.
func isWakeMessage(e match.Envelope) bool { return e.Context&1 != 0 && e.Tag == wakeTag }

// addUnmatched adds the unexpected messages, the posted receives and the sends without a match
// to the state.
func (j *job) addUnmatched(core *protocol.Core, s *deadlock.State) {
	add := func(list *[]deadlock.Message, left *int, e match.Envelope, from, to, bytes int, held bool) bool {
		if isWakeMessage(e) {
			return true
		}
		m := j.describeMessage(e, from, to, bytes)
		if m.Held = held; !deadlock.AddMessage(list, m) {
			*left++
		}
		return *left < deadlock.MaxLeft
	}
	core.EachReceive(func(r *protocol.Request) bool {
		return add(&s.Receives, &s.Left.Receives, r.Envelope, int(r.Envelope.Source), deadlock.Any, len(r.Buf), false)
	})
	core.EachMessage(func(m *protocol.Message, announced bool) bool {
		return add(&s.Messages, &s.Left.Messages, m.Envelope, int(m.Envelope.Source), deadlock.Any, int(m.Length), announced)
	})
	core.EachSend(func(r *protocol.Request) bool {
		return add(&s.Sends, &s.Left.Sends, r.Envelope, deadlock.Any, r.Dest, len(r.Buf), r.Stage() == protocol.Unsent)
	})
}

// describeLastCall describes the last call of a rank.
func (j *job) describeLastCall(send bool, peer int, e match.Envelope) string {
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
		return fmt.Sprintf("Send(dest %s, tag %d)", c.describeRank(int32(peer)), e.Tag)
	}
	return fmt.Sprintf("Recv(source %s, tag %s)", c.describeRank(e.Source), anyOrNumber(int(e.Tag)))
}

var _ = []waitDescriber{&requestWait{}, &probeWait{}, &anyRequest{}, &callNet{}, queueTurn{}, &winWait{}, flushWait{}}

var _ coll.Net = &callNet{}
