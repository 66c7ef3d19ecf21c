package collective

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// callNet is the view that an algorithm has of a communicator during one call: messages with a
// tag of their own. It implements coll.Net and its extensions.
type callNet struct {
	comparedCall
	comm       *Comm
	op         Op
	tag        int32
	round      uint64      // sequence number among all calls of the communicator, from 1
	background *Background // state of a nonblocking call, or nil

	scratch  scratch
	free     []*netMessage
	messages []*netMessage
	waiting  []coll.Request // messages in Wait that are not known to be done
	failure  error          // a lost rank or a mismatch that ends Wait

	channel           *rdmaChannel // RDMA channel opened by the call, or nil
	persistentChannel *rdmaChannel // RDMA channel of a persistent call
	board             boardCall
}

// netMessage is a message of an algorithm, or a remote write that it waits for.
type netMessage struct {
	p       protocol.Request
	receive bool
	writer  int   // 1 + the rank whose RDMA write is waited for, or 0
	err     error // error before the start
}

func (n *callNet) Rank() int { return n.comm.Rank }
func (n *callNet) Size() int { return n.comm.Size }

// OnCopies implements coll.CopyObserver.
func (*callNet) OnCopies(blocks, bytes int) { vtime.ChargeCopies(blocks, bytes) }

// Isend implements coll.Net.
func (n *callNet) Isend(to int, b []byte) coll.Request { return n.isendTagged(to, b, n.tag) }

// isendTagged starts a send with another tag.
func (n *callNet) isendTagged(to int, b []byte, tag int32) coll.Request {
	m := n.newMessage()
	m.p.Envelope = match.Envelope{Context: n.comm.ContextID + 1, Tag: tag}
	m.p.Dest, m.p.Buf, m.p.Signature = n.comm.WorldRank(to), b, n.signatureFor(tag)|n.elementKind((*Op).bufferTo, to)
	m.err = n.comm.Engine.Send(&m.p)
	return m
}

// Irecv implements coll.Net.
func (n *callNet) Irecv(from int, b []byte) coll.Request { return n.irecvTagged(from, b, n.tag) }

// irecvTagged starts a receive with another tag.
func (n *callNet) irecvTagged(from int, b []byte, tag int32) coll.Request {
	m := n.newMessage()
	m.receive = true
	m.p.Envelope = match.Envelope{Context: n.comm.ContextID + 1, Source: int32(n.comm.WorldRank(from)), Tag: tag}
	m.p.Buf, m.p.Signature = b, n.signatureFor(tag)|n.elementKind((*Op).bufferFrom, from)
	if m.err = n.comm.Engine.Receive(&m.p); m.p.WasUnexpected && m.p.Signature != 0 {
		n.unexpected++
	}
	return m
}

// newMessage returns a message from the free list.
func (n *callNet) newMessage() *netMessage {
	if last := len(n.free) - 1; last >= 0 {
		m := n.free[last]
		n.free = n.free[:last]
		return m
	}
	m := &netMessage{}
	n.messages = append(n.messages, m)
	return m
}

// Ready implements engine.Waitable. Once a rank of the communicator is lost it ends the wait:
// other ranks may have given up the call, so that their messages never arrive.
func (n *callNet) Ready() bool {
	if bad := n.mismatch.Load(); bad != nil && len(n.waiting) > 0 {
		n.failure = bad
		return true
	}
	for len(n.waiting) > 0 {
		if m := n.waiting[0].(*netMessage); !n.isDone(m) {
			n.failure = n.comm.Engine.Core().SourceError(match.Envelope{Source: match.Any}, n.comm.WorldRanks)
			return n.failure != nil || n.neverArrives(m)
		}
		n.waiting = n.waiting[1:]
	}
	return true
}

// neverArrives reports whether the sender of a message has completed the call without sending
// it.
func (n *callNet) neverArrives(m *netMessage) bool {
	source := int(m.p.Envelope.Source)
	ended := n.endedRanks.Load()
	if ended == nil || !m.receive || m.p.Envelope.Tag == wakeTag || m.p.Stage() != protocol.Unmatched || !slices.Contains(*ended, source) {
		return false
	}
	d := &callMismatch{Number: n.number, Rank: uint32(n.comm.LocalRank(source)), Other: uint32(n.comm.Rank), Signature: n.signature, OtherSignature: n.signature, Sends: -1}
	n.comm.reportMismatch(n.comm.Engine.Core(), d)
	n.failure = d
	return true
}

// elementKind returns the signature bits of the element kind of a block, if each pair of ranks
// may use another kind, else 0.
func (n *callNet) elementKind(piece func(o *Op, rank, other int) datatype.Buffer, rank int) uint64 {
	if o := &n.op; n.signature != 0 && (o.collective == coll.Alltoallv || o.collective == coll.Alltoallw) && o.grid == nil {
		return uint64(dataSignature(piece(&n.op, n.comm.Rank, rank).Signature())) >> countBits << countBits
	}
	return 0
}

// callSignature returns the signature of the messages of the call, 0 for messages that compare
// calls.
func (n *callNet) callSignature() callSignature { return callSignature(n.signatureFor(n.tag)) }

func (n *callNet) signatureFor(tag int32) uint64 {
	if tag == wakeTag || tag&groupTag == checkTag {
		return 0
	}
	return uint64(n.signature)
}

// isDone reports whether a message is done. It consumes the notification of a remote write.
func (n *callNet) isDone(m *netMessage) bool {
	if m.writer == 0 {
		return m.p.Done
	}
	seen := &n.channel.notified[m.writer-1]
	done := *seen
	*seen = false
	return done
}

// Wait implements coll.Net.
func (n *callNet) Wait(rs ...coll.Request) error {
	for _, r := range rs { // the call fails if one message has not started
		if m := r.(*netMessage); m.err != nil {
			return m.err
		}
	}
	n.waiting, n.failure = rs, nil
	err := n.comm.Engine.Wait(context.Background(), n)
	n.waiting = nil
	if err != nil {
		return err
	}
	if n.failure != nil {
		return n.failure
	}
	for _, r := range rs {
		m := r.(*netMessage)
		if err := n.messageResult(m); err != nil {
			return err
		}
		*m = netMessage{}
		n.free = append(n.free, m)
	}
	return nil
}

// messageResult returns the error of a message that is done.
func (n *callNet) messageResult(m *netMessage) error {
	theirs := callSignature(m.p.SentSignature)
	truncated := errors.Is(m.p.Err, protocol.ErrTruncated)
	switch {
	case m.p.Err != nil && !truncated:
		return m.p.Err
	case !m.receive || m.p.Bytes == len(m.p.Buf) && !truncated && callSignature(m.p.Signature).sameCall(theirs):
		return nil
	}
	d := &callMismatch{Number: n.number, Rank: uint32(n.comm.LocalRank(int(m.p.Received.Source))), Other: uint32(n.comm.Rank),
		Signature: cmp.Or(theirs, n.callSignature()), OtherSignature: callSignature(m.p.Signature), Sends: int64(m.p.Length()), Expects: int64(len(m.p.Buf))}
	if n.comm.fixedTag == 0 && n.signature != 0 {
		n.comm.Engine.Do(func(core *protocol.Core) { n.comm.reportMismatch(core, d) })
	}
	return d
}

// cancelReceives cancels the receives of a failed call. Its other messages complete later, in
// memory that is not reused.
func (n *callNet) cancelReceives() {
	n.comm.Engine.Do(func(core *protocol.Core) {
		for _, m := range n.messages {
			core.Cancel(&m.p)
		}
	})
}

// isUnattended reports whether the call is nonblocking and no goroutine of the program waits
// for it.
func (n *callNet) isUnattended() bool { return n.background != nil && n.background.waiters.Load() == 0 }
