package ud

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/rdm"
)

// link is the state of the operations to a rank.
type link struct {
	rank       int
	peer       *rdm.Peer     // nil until it is connected
	err        error         // not nil if the rank is lost
	pending    fabric.OpList // operations; the first is in flight unless step is stepIdle
	step       step          // progress of the first operation
	op         rdm.Op
	inlineSlot int // slot of Net.inlineMem that the first operation uses, or -1
}

// step is the progress of an operation.
type step uint8

const (
	stepIdle     step = iota
	stepTransfer      // its transfer is in flight
	stepSignal        // its signal must be sent
)

// signalSize is the length of a signal in bytes: the sender's rank and the immediate data.
const signalSize = 8

// Post implements fabric.Net.
func (n *Net) Post(rank int, op *fabric.Op) {
	l := n.linkTo(rank)
	if l.err != nil || n.closed {
		op.Owner.OpDone(op, l.lostError())
		return
	}
	n.stats.ops++
	l.pending.Push(op)
	n.startNext(l)
}

// lostError returns the error of operations on a failed or closed link.
func (l *link) lostError() error {
	if l.err == nil {
		return fabric.ErrClosed
	}
	return l.err
}

// startNext starts the first pending operation if the link is idle.
func (n *Net) startNext(l *link) {
	if l.step != stepIdle || l.peer == nil || l.pending.Len() == 0 {
		return
	}
	n.startTransfer(l)
}

func remoteOf(op *fabric.Op) rdm.Remote { return rdm.Remote{Addr: op.Addr, RKey: op.RKey} }

// startTransfer starts the transfer of the first operation.
func (n *Net) startTransfer(l *link) {
	op := l.pending.First()
	l.step = stepTransfer
	switch {
	case op.Kind == fabric.CompareSwap:
		n.onStarted(l, l.peer.CompareSwap(&l.op, remoteOf(op), op.Compare, op.Operand))
	case op.Kind == fabric.FetchAdd:
		n.onStarted(l, l.peer.FetchAdd(&l.op, remoteOf(op), op.Operand))
	case op.Kind == fabric.Get:
		n.onStarted(l, l.peer.Read(&l.op, op.Mem.(memory).At(op.Off, op.N), remoteOf(op)))
	case op.Mem != nil:
		n.onStarted(l, l.peer.Write(&l.op, op.Mem.(memory).At(op.Off, op.N), remoteOf(op)))
	case len(op.Inline) > 0:
		if len(n.freeInline) == 0 {
			l.step = stepIdle
			n.waiting = append(n.waiting, l)
			return
		}
		last := len(n.freeInline) - 1
		l.inlineSlot = n.freeInline[last]
		n.freeInline = n.freeInline[:last]
		at := l.inlineSlot * fabric.InlineMax
		copy(n.inlineMem.Bytes()[at:], op.Inline)
		n.onStarted(l, l.peer.Write(&l.op, n.inlineMem.At(at, len(op.Inline)), remoteOf(op)))
	case op.Signal:
		l.step = stepSignal
		n.watchLink(l)
	default: // an empty put is a liveness probe, and so is an empty message
		l.step = stepSignal
		n.watchLink(l)
	}
}

// onStarted handles the result of starting a transfer.
func (n *Net) onStarted(l *link, err error) {
	if err != nil {
		n.finishFirst(l, err)
		return
	}
	n.watchLink(l)
}

// advanceLink continues after a completed step. It reports false if the signal could not be sent yet.
func (n *Net) advanceLink(l *link) bool {
	op := l.pending.First()
	if op == nil { // the link has failed meanwhile
		return true
	}
	if l.step != stepSignal {
		if err := l.op.Err(); err != nil {
			n.finishFirst(l, err)
			return true
		}
	}
	if l.step == stepTransfer && !op.Signal {
		n.finishFirst(l, nil)
		return true
	}
	l.step = stepSignal
	b := binary.BigEndian.AppendUint32(nil, uint32(n.rank))
	if op.Signal {
		b = binary.BigEndian.AppendUint32(b, op.Imm)
	}
	err := l.peer.TrySend(b)
	if err == rdm.ErrWouldBlock {
		return false
	}
	n.finishFirst(l, err)
	return true
}

// finishFirst completes the first operation, and starts the next one.
func (n *Net) finishFirst(l *link, err error) {
	op := l.pending.Pop()
	if op.Kind == fabric.CompareSwap || op.Kind == fabric.FetchAdd {
		op.Old = l.op.Old()
	}
	n.releaseInline(l)
	l.step = stepIdle
	switch {
	case isPeerFailure(err):
		op.Owner.OpDone(op, fmt.Errorf("%w: %w", fabric.ErrLost, err))
		n.failLink(l, err)
		return
	case isAccessError(err):
		err = fmt.Errorf("%w: %w", fabric.ErrAccess, err)
	}
	op.Owner.OpDone(op, err)
	n.startNext(l)
}

// isPeerFailure reports whether err means that the peer is lost.
func isPeerFailure(err error) bool {
	var peer *rdm.PeerError
	return errors.As(err, &peer) || slices.ContainsFunc([]error{rdm.ErrTimeout, rdm.ErrRestarted, rdm.ErrProtocol, rdm.ErrDisconnected},
		func(cause error) bool { return errors.Is(err, cause) })
}

// isAccessError reports whether err is a refusal by the target.
func isAccessError(err error) bool {
	return slices.ContainsFunc([]error{rdm.ErrKey, rdm.ErrBounds, rdm.ErrAccess, rdm.ErrDenied, rdm.ErrRemote, rdm.ErrAlign},
		func(cause error) bool { return errors.Is(err, cause) })
}

// releaseInline frees the link's inline slot, and starts the links that wait for one.
func (n *Net) releaseInline(l *link) {
	if l.inlineSlot < 0 {
		return
	}
	n.freeInline = append(n.freeInline, l.inlineSlot)
	l.inlineSlot = -1
	list := n.waiting
	n.waiting = nil
	for _, s := range list {
		n.startNext(s)
	}
}

// failLink fails the link, completes its operations with the error, and reports the rank as lost. It is
// idempotent.
func (n *Net) failLink(l *link, cause error) {
	if l.err != nil {
		return
	}
	l.err = fmt.Errorf("%w: %w", fabric.ErrLost, cause)
	l.step = stepIdle
	n.releaseInline(l)
	for op := l.pending.Pop(); op != nil; op = l.pending.Pop() {
		op.Owner.OpDone(op, l.err)
	}
	n.host.PeerLost(l.rank, l.err)
}

// deliverSignal handles a message: immediate data, or a liveness probe. A signal must come from the rank that
// it names, which is connected: no other rank has a channel with this one.
func (n *Net) deliverSignal(from *rdm.Peer, b []byte) {
	if len(b) == signalSize/2 {
		return
	}
	if len(b) != signalSize {
		n.stats.stray++
		return
	}
	rank := binary.BigEndian.Uint32(b)
	if uint64(rank) >= uint64(len(n.links)) || n.links[rank] == nil || n.links[rank].peer != from {
		n.stats.stray++
		return
	}
	n.stats.signals++
	n.host.HandleSignal(int(rank), binary.BigEndian.Uint32(b[4:]))
}
