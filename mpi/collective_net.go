package mpi

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// net is what an algorithm sees of a communicator during one call: messages with a
// tag of their own. It implements coll.Net, and what extends it.
type net struct {
	c     *Comm
	call  *call
	tag   int32
	lane  *lane // what the call has opened
	board onBoard
	free  []*message
	all   []*message

	met     int                   // messages that had come before their receive
	waiting []coll.Request        // those of Wait that are not known to be done
	lost    error                 // a rank of the communicator is lost, or the call is wrong
	ended   atomic.Pointer[[]int] // ranks of the job that are through with the call
}

// message is one of an algorithm's.
type message struct {
	p       protocol.Request
	receive bool
	placed  int   // the rank that has to tell that it has written, and 1
	err     error // why it has not begun
}

func (n *net) Rank() int { return n.c.rank }
func (n *net) Size() int { return n.c.size }

// Isend implements coll.Net.
func (n *net) Isend(to int, b []byte) coll.Request { return n.send(to, b, n.tag) }

func (n *net) send(to int, b []byte, tag int32) coll.Request {
	m := n.message()
	m.p.Envelope = match.Envelope{Context: n.c.id + 1, Tag: tag}
	m.p.Dest, m.p.Buf, m.p.Signature = n.c.job(to), b, n.signOf(tag)|n.kindOf((*call).gives, to)
	m.err = n.c.eng.Send(&m.p)
	return m
}

// Irecv implements coll.Net.
func (n *net) Irecv(from int, b []byte) coll.Request { return n.receive(from, b, n.tag) }

func (n *net) receive(from int, b []byte, tag int32) coll.Request {
	m := n.message()
	m.receive = true
	m.p.Envelope = match.Envelope{Context: n.c.id + 1, Source: int32(n.c.job(from)), Tag: tag}
	m.p.Buf, m.p.Signature = b, n.signOf(tag)|n.kindOf((*call).expects, from)
	if m.err = n.c.eng.Receive(&m.p); m.p.WasUnexpected && m.p.Signature != 0 {
		n.met++
	}
	return m
}

func (n *net) message() *message {
	if last := len(n.free) - 1; last >= 0 {
		m := n.free[last]
		n.free = n.free[:last]
		return m
	}
	m := &message{}
	n.all = append(n.all, m)
	return m
}

// Ready implements engine.Waitable. When a rank of the communicator is lost nothing is
// waited for any more: those who wait for others may wait for ever, who have given up.
func (n *net) Ready() bool {
	if bad := n.call.bad.Load(); bad != nil && len(n.waiting) > 0 {
		n.lost = bad
		return true
	}
	for len(n.waiting) > 0 {
		if m := n.waiting[0].(*message); !n.over(m) {
			n.lost = n.c.eng.Core().SourceError(match.Envelope{Source: match.Any}, n.c.ranks)
			return n.lost != nil || n.missing(m)
		}
		n.waiting = n.waiting[1:]
	}
	return true
}

// missing reports whether a message is waited for that will never come: its sender is
// through with the call.
func (n *net) missing(m *message) bool {
	source := int(m.p.Envelope.Source)
	ended := n.ended.Load()
	if ended == nil || !m.receive || m.p.Envelope.Tag == wakeTag || m.p.Stage() != protocol.Unmatched || !slices.Contains(*ended, source) {
		return false
	}
	k := n.call
	d := &disagreement{Number: uint32(n.tag) & maxSeq, Rank: uint32(n.c.local(source)), Other: uint32(n.c.rank), Sign: k.sign, Theirs: k.sign, Sends: -1}
	n.c.disagree(n.c.eng.Core(), d)
	n.lost = d
	return true
}

// kindOf is the kind of the elements of a piece, in a sign, where every two ranks may
// exchange another.
func (n *net) kindOf(piece func(*call, int) Buffer, rank int) uint64 {
	if k := n.call; k.sign != 0 && (k.op.what == coll.Alltoallv || k.op.what == coll.Alltoallw) && k.op.cart == nil {
		return uint64(dataSign(piece(k, rank).Signature())) >> countBits << countBits
	}
	return 0
}

// sign returns the sign of the messages of the call; of those by which calls are compared it is
// 0.
func (n *net) sign() callSign { return callSign(n.signOf(n.tag)) }

func (n *net) signOf(tag int32) uint64 {
	if tag == wakeTag || tag&groupTag == checkTag {
		return 0
	}
	return uint64(n.call.sign)
}

// over reports whether a message has come to its end, and is asked until it has.
func (n *net) over(m *message) bool {
	if m.placed == 0 {
		return m.p.Done
	}
	came := &n.lane.came[m.placed-1]
	over := *came
	*came = false
	return over
}

// Wait implements coll.Net.
func (n *net) Wait(rs ...coll.Request) error {
	for _, r := range rs { // without those that have not begun the call comes to nothing
		if m := r.(*message); m.err != nil {
			return m.err
		}
	}
	n.waiting, n.lost = rs, nil
	err := n.c.eng.Wait(context.Background(), n)
	n.waiting = nil
	if err != nil {
		return err
	}
	if n.lost != nil {
		return n.lost
	}
	for _, r := range rs {
		m := r.(*message)
		if err := n.result(m); err != nil {
			return err
		}
		*m = message{}
		n.free = append(n.free, m)
	}
	return nil
}

// result is what has become of a message that is done.
func (n *net) result(m *message) error {
	theirs := callSign(m.p.SentSignature)
	truncated := errors.Is(m.p.Err, ErrTruncated)
	switch {
	case m.p.Err != nil && !truncated:
		return m.p.Err
	case !m.receive || m.p.Bytes == len(m.p.Buf) && !truncated && callSign(m.p.Signature).agrees(theirs):
		return nil
	}
	d := &disagreement{Number: uint32(n.tag) & maxSeq, Rank: uint32(n.c.local(int(m.p.Received.Source))), Other: uint32(n.c.rank),
		Sign: cmp.Or(theirs, n.sign()), Theirs: callSign(m.p.Signature), Sends: int64(m.p.Length()), Expects: int64(len(m.p.Buf))}
	if n.c.tag == 0 && n.call.sign != 0 {
		n.c.eng.Do(func(core *protocol.Core) { n.c.disagree(core, d) })
	}
	return d
}

// abandon takes back the receives that nobody will wait for. What else is under
// way goes on, in memory that has no other use.
func (n *net) abandon() {
	n.c.eng.Do(func(core *protocol.Core) {
		for _, m := range n.all {
			core.Cancel(&m.p)
		}
	})
}

// scratch is the memory of one call after the other. It is kept, so that it does
// not have to be registered with the adapter each time. It implements coll.Memory.
type scratch struct {
	free [bits.UintSize][][]byte // by the logarithm of their size
	kept int                     // bytes
}

const (
	minScratch = 64       // bytes: aligned for every element
	maxScratch = 16 << 20 // that are kept
)

func class(n int) int { return bits.Len(uint(max(n, minScratch) - 1)) }

// Get implements coll.Memory.
func (s *scratch) Get(n int) []byte {
	if n == 0 {
		return nil
	}
	free := &s.free[class(n)]
	if last := len(*free) - 1; last >= 0 {
		b := (*free)[last]
		*free = (*free)[:last]
		s.kept -= cap(b)
		return b[:n]
	}
	return make([]byte, n, 1<<class(n))
}

// Put implements coll.Memory.
func (s *scratch) Put(b []byte) {
	if c := cap(b); c > 0 && s.kept+c <= maxScratch {
		s.kept += c
		s.free[class(c)] = append(s.free[class(c)], b)
	}
}
