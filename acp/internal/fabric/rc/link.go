package rc

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// link is the connection on which our operations on a rank go.
type link struct {
	rank    int
	state   state
	dirty   bool // in Net.dirty
	waiting bool // in Net.waiting
	qp      verbs.QP
	conn    *cm.Conn
	err     error // it is down

	pending  fabric.OpList // operations that are not posted yet
	inFlight fabric.OpList // those that are, the oldest first
	posted   uint32        // how many there were
}

type state uint8

const (
	dialing state = iota
	up
	down // for good
)

func (l *link) lostError() error {
	if l.err == nil {
		return fabric.ErrClosed
	}
	return l.err
}

// postMax is how many operations leave in one list.
const postMax = 32

// signalEvery is how many operations there are at most for each that is reported.
const signalEvery = 16

// postPending posts what waits, as far as there is room.
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
			return // it breaks: a completion tells why, or cm does
		}
		op := l.pending.Pop() // the one that cannot be posted
		op.Owner.OpDone(op, err)
	}
}

// freeResults takes the cells back of the first k operations that wait, which have been laid out and not posted.
func (n *Net) freeResults(l *link, k int) {
	for op := l.pending.First(); k > 0; op, k = op.Next, k-1 {
		n.results.freeSlot(n, op)
	}
}

// buildRequests makes work requests of the first that wait.
func (n *Net) buildRequests(l *link) (k int) {
	room := min(sendQueue-l.inFlight.Len(), postMax)
	report := -1 // the last that somebody waits for
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
			if !n.results.allocSlot(n, l, op) { // it waits, and what is behind it
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

// memorySGE names a piece of memory that Register has returned.
func memorySGE(m fabric.Memory, off, n int) verbs.SGE { return m.(verbs.MR).SGE(off, n) }

// completeBefore ends the operations before an ordinal: an adapter reports them in order.
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

// handleFailure handles a completion that is no success: an operation's own, after which the
// connection is made anew for those behind it, or that of the connection.
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

func connErr(l *link) error {
	if l.conn == nil {
		return nil
	}
	return l.conn.Err()
}

// reconnect makes a connection anew. What is in flight was behind an operation that the target has
// refused, and it has looked at nothing since: it goes once more.
func (n *Net) reconnect(l *link) {
	n.stats.repaired++
	var again fabric.OpList
	for op := l.inFlight.Pop(); op != nil; op = l.inFlight.Pop() {
		n.results.freeSlot(n, op)
		again.Push(op)
	}
	again.Append(&l.pending)
	l.pending = again
	old := *l
	n.detachQP(l)
	l.state = dialing
	n.startDial(l)
	n.goroutines.Go(func() { n.closeLink(&old) })
}

// detachQP takes a link's queue pair away.
func (n *Net) detachQP(l *link) {
	if l.qp != nil {
		delete(n.byQP, l.qp.Num())
	}
	if l.conn != nil {
		l.conn.AfterDone(nil)
	}
	l.qp, l.conn = nil, nil
}

// failLink ends a link for good, with all operations on it.
func (n *Net) failLink(l *link, why error) {
	if l.state == down || n.closed {
		return
	}
	l.state, l.err = down, fmt.Errorf("%w: %w", fabric.ErrLost, why)
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
