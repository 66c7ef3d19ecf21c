package mpi

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/coll"
	"github.com/softrnic/softrnic/mpi/hang"
	"github.com/softrnic/softrnic/mpi/match"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// describer is something that a goroutine waits for and that can be told of to
// people: the lookout asks it, with the engine's lock held, while the goroutine waits.
type describer interface{ describe() hang.Call }

// anyOr is a rank or a tag in words.
func anyOr(n int) string {
	if n == match.Any {
		return "any"
	}
	return fmt.Sprint(n)
}

// whereFrom is what a receive or a probe waits for: ranks of the job, and whether one
// of them is enough.
func (c *Comm) whereFrom(e match.Envelope) (ranks []int, any bool) {
	if e.Source != match.Any {
		return []int{int(e.Source)}, false
	}
	if c.ranks != nil {
		return c.ranks, true
	}
	return ranksBelow(c.size), true
}

// source is the rank of a receive in words: its number here, and in the job if that is
// another.
func (c *Comm) source(job int32) string {
	here := c.local(int(job))
	if c.ranks == nil || job < 0 || here == int(job) {
		return anyOr(here)
	}
	return fmt.Sprintf("%d, which is rank %d of the job", here, job)
}

// describe implements describer.
func (r *Request) describe() hang.Call {
	c, p := r.comm, &r.p
	d := hang.Call{What: r.op, Comm: c.Name()}
	d.For, d.Any = r.whom()
	if len(d.For) > 0 && r.remote != nil {
		d.What += fmt.Sprintf("(target %s)", c.source(int32(c.job(r.remote.target))))
	}
	if r.null || r.work.over != nil || r.remote != nil {
		return d
	}
	stage := p.Stage()
	d.Unmet = stage != protocol.Moving
	if r.op == "receive" {
		d.What = fmt.Sprintf("Recv(source %s, tag %s)", c.source(p.Envelope.Source), anyOr(int(p.Envelope.Tag)))
		if !d.Unmet {
			d.Why = fmt.Sprintf("%d bytes with tag %d are on their way", p.Bytes, p.Received.Tag)
		}
		return d
	}
	name := "Send"
	if p.Sync {
		name = "Ssend"
	}
	d.What = fmt.Sprintf("%s(%d bytes, dest %s, tag %d)", name, len(p.Buf)-c.world.mark(), c.source(int32(p.Dest)), p.Envelope.Tag)
	switch stage {
	case protocol.Unsent:
		d.Why = "there is no room on the way"
	case protocol.Unmatched:
		d.Why = "its receive is not there"
	case protocol.Moving:
		d.Why = "it is on its way"
	}
	return d
}

// whom is for whom a request waits: ranks of the job, none if that is not known, and
// whether one of them is enough.
func (r *Request) whom() (ranks []int, any bool) {
	switch {
	case r.null || r.work.over != nil || r.remote != nil && r.remote.done:
		return nil, false
	case r.remote != nil:
		return []int{r.comm.job(r.remote.target)}, false
	case r.op != "receive":
		return []int{r.p.Dest}, false
	case r.p.Stage() == protocol.Moving:
		return []int{int(r.p.Received.Source)}, false
	}
	return r.comm.whereFrom(r.p.Envelope)
}

// company is several requests in words, of which one is known.
func company(name, one string, n int) string {
	if n > 1 {
		one += fmt.Sprintf(" and %d more", n-1)
	}
	return name + "(" + one + ")"
}

// describe implements describer.
func (s *sought) describe() hang.Call {
	d := hang.Call{What: fmt.Sprintf("Probe(source %s, tag %s)", s.comm.source(s.pattern.Source), anyOr(int(s.pattern.Tag))), Comm: s.comm.Name(), Unmet: true}
	d.For, d.Any = s.comm.whereFrom(s.pattern)
	return d
}

// describe implements describer. One of the requests is enough.
func (s *some) describe() hang.Call {
	d := hang.Call{Any: true}
	n, all := 0, true
	for _, r := range s.rs {
		if r.idle() {
			continue
		}
		one := r.describe()
		if n++; n == 1 {
			d.What, d.Comm = one.What, one.Comm
		}
		all = all && len(one.For) > 0
		d.For = append(d.For, one.For...)
	}
	d.What = company("WaitAny", d.What, n)
	slices.Sort(d.For)
	if d.For = slices.Compact(d.For); !all { // a call in the background, or a window's: of whom it depends is not known
		d.For, d.Any = nil, false
	}
	return d
}

// describe implements describer: a collective call waits for those whose messages
// have not come, or who have not taken ours.
func (n *net) describe() hang.Call {
	k := n.call
	at := k.place()
	d := hang.Call{What: at.String(), Comm: n.c.Name(), Collective: &at, Unmet: true}
	d.Aside = k.aside()
	for _, r := range n.waiting {
		m := r.(*message)
		switch {
		case m.p.Done:
		case m.p.Dest < 0: // of a queue: nobody knows who is next
			all, _ := n.c.whereFrom(match.Envelope{Source: match.Any})
			d.For, d.Any = append(d.For, all...), true
		case m.placed > 0:
			d.For = append(d.For, n.c.job(m.placed-1))
		case m.receive:
			d.For = append(d.For, int(m.p.Envelope.Source))
		default:
			d.For = append(d.For, m.p.Dest)
		}
	}
	slices.Sort(d.For)
	d.For = slices.Compact(d.For)
	if self := slices.Index(d.For, n.c.eng.Rank()); self >= 0 && d.Any {
		d.For = slices.Delete(d.For, self, self+1)
	}
	return d
}

// place is which call of its communicator this is.
func (k *call) place() hang.Collective {
	c := k.comm
	at := hang.Collective{Comm: c.id, Ranks: c.fingerprint(), Name: c.Name(), Seq: uint32(k.net.tag) & maxSeq, What: k.op.name()}
	if r := k.record(); !r.Refused {
		at.With = strings.TrimSpace(strings.TrimPrefix(r.String(), at.What))
	}
	return at
}

// last is the last collective call that was begun on the communicator, if there was
// one.
func (c *Comm) last() (at hang.Collective, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq == 0 {
		return at, false
	}
	return hang.Collective{Comm: c.id, Ranks: c.fingerprint(), Name: c.Name(), Seq: c.seq & maxSeq, What: c.lastName, Begun: true}, true
}

// fingerprint tells communicators apart that have the same number on different ranks.
func (c *Comm) fingerprint() uint64 {
	h := fnv.New64a()
	for r := range c.size {
		fmt.Fprintln(h, c.job(r))
	}
	return h.Sum64()
}

// describe implements describer.
func (x *winWait) describe() hang.Call {
	d := hang.Call{What: x.what, Comm: x.w.Name(), Any: x.any}
	switch len(x.targets) {
	case 0:
	case 1:
		d.What += fmt.Sprintf("(target %s)", x.w.comm.source(int32(x.w.comm.job(x.targets[0]))))
	default:
		d.What += fmt.Sprintf("(%d ranks)", len(x.targets))
	}
	suspects := x.suspects
	if suspects == nil && x.any { // anybody else
		suspects = slices.DeleteFunc(x.w.everyone(), func(r int) bool { return r == x.w.comm.rank })
	}
	for _, r := range suspects {
		if x.missing == nil || x.missing(r) {
			d.For = append(d.For, x.w.comm.job(r))
		}
	}
	return d
}

// message is what is told of one that has no partner, or several.
func (w *World) message(e match.Envelope, from, to int, bytes int) hang.Message {
	m := hang.Message{From: from, To: to, Tag: int(e.Tag), Bytes: int64(bytes)}
	c := w.comms.get(e.Context &^ 1)
	switch {
	case c == nil:
		m.Comm = fmt.Sprintf("communicator %d, which is not there", e.Context&^1)
	case e.Context&1 != 0:
		m.Comm, m.Call = c.Name(), uint32(e.Tag)&maxSeq
	default:
		m.Comm = c.Name()
		m.Bytes = max(0, m.Bytes-int64(w.mark()))
	}
	return m
}

// wakes reports whether a message is one that only wakes: who waits for it is listed as
// what it waits for.
func wakes(e match.Envelope) bool { return e.Context&1 != 0 && e.Tag == wakeTag }

// leftovers lists what has no partner yet.
func (w *World) leftovers(core *protocol.Core, s *hang.State) {
	add := func(list *[]hang.Message, left *int, e match.Envelope, from, to, bytes int, held bool) bool {
		if wakes(e) {
			return true
		}
		m := w.message(e, from, to, bytes)
		if m.Held = held; !hang.Add(list, m) {
			*left++
		}
		return *left < hang.MaxLeft
	}
	core.EachReceive(func(r *protocol.Request) bool {
		return add(&s.Receives, &s.Left.Receives, r.Envelope, int(r.Envelope.Source), hang.Any, len(r.Buf), false)
	})
	core.EachMessage(func(m *protocol.Message, announced bool) bool {
		return add(&s.Messages, &s.Left.Messages, m.Envelope, int(m.Envelope.Source), hang.Any, int(m.Length), announced)
	})
	core.EachSend(func(r *protocol.Request) bool {
		return add(&s.Sends, &s.Left.Sends, r.Envelope, hang.Any, r.Dest, len(r.Buf), r.Stage() == protocol.Unsent)
	})
}

// lastCall is what a rank did last, in words.
func (w *World) lastCall(send bool, peer int, e match.Envelope) string {
	c := w.comms.get(e.Context &^ 1)
	switch {
	case c == nil:
		return ""
	case e.Context&1 != 0:
		if at, ok := c.last(); ok {
			return at.String()
		}
		return "a collective call"
	case send:
		return fmt.Sprintf("Send(dest %s, tag %d)", c.source(int32(peer)), e.Tag)
	}
	return fmt.Sprintf("Recv(source %s, tag %s)", c.source(e.Source), anyOr(int(e.Tag)))
}

var _ = []describer{&Request{}, &sought{}, &some{}, &net{}, turn{}, &winWait{}, flushWait{}}

var _ coll.Net = &net{}
