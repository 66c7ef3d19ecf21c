package rc

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// link is the connection for this rank's operations on another rank.
type link struct {
	rank    int
	state   state
	dirty   bool // in Net.dirty
	waiting bool // in Net.waiting
	qp      verbs.QP
	conn    *cm.Conn
	err     error // not nil in state down

	pending  fabric.OpList // operations not posted yet
	inFlight fabric.OpList // posted operations, the oldest first
	posted   uint32        // number of operations posted
}

type state uint8

const (
	dialing state = iota
	up
	down // failed for good
)

// lostError returns the error of operations on a failed or closed link.
func (l *link) lostError() error {
	if l.err == nil {
		return fabric.ErrClosed
	}
	return l.err
}

// postMax is the maximum number of work requests in one post.
const postMax = 32

// signalEvery is the maximum distance between signaled operations.
const signalEvery = 16

// postPending posts pending operations up to the depth of the send queue.
func (n *Net) postPending(l *link) {
	for l.state == up && l.pending.Len() > 0 {
		k := n.buildRequests(l)
		if k == 0 {
			return
		}
		done, err := l.qp.PostSend(n.wrs[:k])
		for range done {
			op := l.pending.Pop()
			op.Seq = l.posted
			l.posted++
			l.inFlight.Push(op)
		}
		if done == k {
			continue
		}
		n.freeResults(l, k-done)
		if errors.Is(err, verbs.ErrState) || errors.Is(err, verbs.ErrClosed) {
			return // the connection breaks: a completion or the CM reports the cause
		}
		op := l.pending.Pop() // the operation that cannot be posted
		op.Owner.OpDone(op, err)
	}
}

// freeResults frees the result slots of the first k pending operations, for which requests were built but not
// posted.
func (n *Net) freeResults(l *link, k int) {
	for op := l.pending.First(); k > 0; op, k = op.Next, k-1 {
		n.results.freeSlot(n, op)
	}
}

// buildRequests builds work requests for the first pending operations, and returns their number.
func (n *Net) buildRequests(l *link) (k int) {
	room := min(sendQueue-l.inFlight.Len(), postMax)
	report := -1 // the last operation that is not lazy
posts:
	for op := l.pending.First(); op != nil && k < room; op = op.Next {
		wr := &n.wrs[k]
		*wr = verbs.SendWR{WRID: uint64(l.posted) + uint64(k), RemoteAddr: op.Addr, RKey: op.RKey, SGList: n.sges[k][:1]}
		wr.WRID &= 1<<32 - 1
		switch op.Kind {
		case fabric.Put:
			wr.Opcode = verbs.WRRDMAWrite
			if op.Signal {
				wr.Opcode, wr.Imm = verbs.WRRDMAWriteWithImm, op.Imm
			}
			if op.Mem == nil {
				wr.SGList, wr.InlineData, wr.Flags = nil, op.Inline, verbs.SendInline
			} else {
				n.sges[k][0] = memorySGE(op.Mem, op.Off, op.N)
			}
		case fabric.Get:
			wr.Opcode = verbs.WRRDMARead
			n.sges[k][0] = memorySGE(op.Mem, op.Off, op.N)
		default:
			if !n.results.allocSlot(n, l, op) { // this operation and those behind it wait
				break posts
			}
			n.sges[k][0] = n.results.slotSGE(op)
			wr.Opcode, wr.CompareAdd = verbs.WRAtomicFetchAdd, op.Operand
			if op.Kind == fabric.CompareSwap {
				wr.Opcode, wr.CompareAdd, wr.Swap = verbs.WRAtomicCmpSwap, op.Compare, op.Operand
			}
		}
		if !op.Lazy {
			report = k
		}
		if (l.posted+uint32(k))%signalEvery == signalEvery-1 {
			wr.Flags |= verbs.SendSignaled
		}
		k++
	}
	if report >= 0 {
		n.wrs[report].Flags |= verbs.SendSignaled
	}
	return k
}

// memorySGE returns the scatter/gather element for memory that Register has returned.
func memorySGE(m fabric.Memory, off, n int) verbs.SGE { return m.(verbs.MR).SGE(off, n) }

// completeBefore completes the operations in flight before an ordinal. Completions of a queue pair arrive in
// order.
func (n *Net) completeBefore(l *link, before uint32) {
	for op := l.inFlight.First(); op != nil && int32(op.Seq-before) < 0; op = l.inFlight.First() {
		l.inFlight.Pop()
		n.results.freeSlot(n, op)
		op.Owner.OpDone(op, nil)
	}
	if l.pending.Len() > 0 {
		n.markDirty(l)
	}
}

// handleFailure handles an error completion. An error of the operation itself fails that operation and
// reconnects for those behind it; an error of the connection fails the link.
func (n *Net) handleFailure(l *link, ordinal uint32, wc *verbs.WC) {
	n.completeBefore(l, ordinal)
	switch wc.Status {
	case verbs.WCRemAccessErr, verbs.WCRemInvReqErr, verbs.WCRemOpErr, verbs.WCLocProtErr, verbs.WCLocLenErr, verbs.WCLocAccessErr, verbs.WCLocQPOpErr:
	case verbs.WCWRFlushErr:
		if err := connErr(l); err != nil {
			n.failLink(l, err)
			return
		}
		n.failLink(l, wc.Err())
		return
	default:
		n.failLink(l, wc.Err())
		return
	}
	op := l.inFlight.Pop()
	if op == nil || op.Seq != ordinal {
		n.failLink(l, wc.Err())
		return
	}
	n.reconnect(l)
	n.results.freeSlot(n, op)
	err := wc.Err()
	if wc.Status == verbs.WCRemAccessErr || wc.Status == verbs.WCRemInvReqErr {
		err = fmt.Errorf("%w: %w", fabric.ErrAccess, err)
	}
	op.Owner.OpDone(op, err)
}

// connErr returns the error of the link's connection, or nil.
func connErr(l *link) error {
	if l.conn == nil {
		return nil
	}
	return l.conn.Err()
}

// reconnect replaces a broken connection. The operations in flight were behind one that the target refused,
// and the target has executed none of them, so they are posted again.
func (n *Net) reconnect(l *link) {
	n.stats.repaired++
	var repeated fabric.OpList
	for op := l.inFlight.Pop(); op != nil; op = l.inFlight.Pop() {
		n.results.freeSlot(n, op)
		repeated.Push(op)
	}
	repeated.Append(&l.pending)
	l.pending = repeated
	old := *l
	n.detachQP(l)
	l.state = dialing
	n.startDial(l)
	n.goroutines.Go(func() { n.closeLink(&old) })
}

// detachQP removes the queue pair and connection from a link.
func (n *Net) detachQP(l *link) {
	if l.qp != nil {
		delete(n.byQP, l.qp.Num())
	}
	if l.conn != nil {
		l.conn.AfterDone(nil)
	}
	l.qp, l.conn = nil, nil
}

// failLink fails a link for good, completes its operations with the error, and reports the rank as lost. It
// is idempotent.
func (n *Net) failLink(l *link, cause error) {
	if l.state == down || n.closed {
		return
	}
	l.state, l.err = down, fmt.Errorf("%w: %w", fabric.ErrLost, cause)
	old := *l
	n.detachQP(l)
	n.goroutines.Go(func() { n.closeLink(&old) })
	l.inFlight.Append(&l.pending)
	for op := l.inFlight.Pop(); op != nil; op = l.inFlight.Pop() {
		n.results.freeSlot(n, op)
		op.Owner.OpDone(op, l.err)
	}
	n.host.PeerLost(l.rank, l.err)
}
