package ud

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/rdm"
)

// link is the way to a rank.
type link struct {
	rank    int
	peer    *rdm.Peer   // nil until it is found
	why     error       // it is lost
	pending fabric.List // operations; the first is under way if step says so
	step    step        // of the first
	op      rdm.Op
	word    int // piece of Net.words that the first uses, or -1
}

// step is how far an operation has come.
type step uint8

const (
	waiting step = iota
	moving       // its bytes are under way
	telling      // the signal has to leave
)

// signalSize is the length of a signal: the rank that it is from, and the immediate data.
const signalSize = 8

// Post implements fabric.Net.
func (n *Net) Post(rank int, op *fabric.Op) {
	l := n.link(rank)
	if l.why != nil || n.closed {
		op.Owner.OpDone(op, l.lost())
		return
	}
	n.stats.ops++
	l.pending.Push(op)
	n.begin(l)
}

func (l *link) lost() error {
	if l.why == nil {
		return fabric.ErrClosed
	}
	return l.why
}

// begin begins the first operation that waits.
func (n *Net) begin(l *link) {
	if l.step != waiting || l.peer == nil || l.pending.Len() == 0 {
		return
	}
	n.move(l)
}

func remote(op *fabric.Op) rdm.Remote { return rdm.Remote{Addr: op.Addr, RKey: op.RKey} }

// move begins the operation itself.
func (n *Net) move(l *link) {
	op := l.pending.First()
	l.step = moving
	switch {
	case op.Kind == fabric.CompareSwap:
		n.started(l, l.peer.CompareSwap(&l.op, remote(op), op.Compare, op.Operand))
	case op.Kind == fabric.FetchAdd:
		n.started(l, l.peer.FetchAdd(&l.op, remote(op), op.Operand))
	case op.Kind == fabric.Get:
		n.started(l, l.peer.Read(&l.op, op.Mem.(memory).At(op.Off, op.N), remote(op)))
	case op.Mem != nil:
		n.started(l, l.peer.Write(&l.op, op.Mem.(memory).At(op.Off, op.N), remote(op)))
	case len(op.Inline) > 0:
		if len(n.free) == 0 {
			l.step = waiting
			n.starve = append(n.starve, l)
			return
		}
		last := len(n.free) - 1
		l.word = n.free[last]
		n.free = n.free[:last]
		at := l.word * fabric.InlineMax
		copy(n.words.Bytes()[at:], op.Inline)
		n.started(l, l.peer.Write(&l.op, n.words.At(at, len(op.Inline)), remote(op)))
	case op.Signal:
		l.step = telling
		n.await(l)
	default: // an empty put asks whether the rank is there: so does a message, to nobody
		l.step = telling
		n.await(l)
	}
}

// started notes that a step is under way, or could not be.
func (n *Net) started(l *link, err error) {
	if err != nil {
		n.ended(l, err)
		return
	}
	n.await(l)
}

// next goes on behind a step that is done. It reports whether there is nothing more to do for the link here.
func (n *Net) next(l *link) bool {
	op := l.pending.First()
	if op == nil { // it was lost meanwhile
		return true
	}
	if l.step != telling {
		if err := l.op.Err(); err != nil {
			n.ended(l, err)
			return true
		}
	}
	if l.step == moving && !op.Signal {
		n.ended(l, nil)
		return true
	}
	l.step = telling
	b := binary.BigEndian.AppendUint32(nil, uint32(n.rank))
	if op.Signal {
		b = binary.BigEndian.AppendUint32(b, op.Imm)
	}
	ok, err := l.peer.TrySend(b)
	if err == nil && !ok {
		return false
	}
	n.ended(l, err)
	return true
}

// ended ends the first operation, and begins the next one.
func (n *Net) ended(l *link, err error) {
	op := l.pending.Pop()
	if op.Kind == fabric.CompareSwap || op.Kind == fabric.FetchAdd {
		op.Old = l.op.Old()
	}
	n.giveWord(l)
	l.step = waiting
	switch {
	case gone(err):
		op.Owner.OpDone(op, fmt.Errorf("%w: %w", fabric.ErrLost, err))
		n.lose(l, err)
		return
	case refused(err):
		err = fmt.Errorf("%w: %w", fabric.ErrAccess, err)
	}
	op.Owner.OpDone(op, err)
	n.begin(l)
}

// gone reports whether an error is the end of a peer: what an operation that was under way then tells, or one that came later.
func gone(err error) bool {
	var peer *rdm.PeerError
	return errors.As(err, &peer) || slices.ContainsFunc([]error{rdm.ErrTimeout, rdm.ErrRestarted, rdm.ErrProtocol, rdm.ErrDisconnected},
		func(why error) bool { return errors.Is(err, why) })
}

// refused reports whether the target does not permit what was asked of it.
func refused(err error) bool {
	return slices.ContainsFunc([]error{rdm.ErrKey, rdm.ErrBounds, rdm.ErrAccess, rdm.ErrDenied, rdm.ErrRemote, rdm.ErrAlign},
		func(why error) bool { return errors.Is(err, why) })
}

// giveWord gives the piece of words back, and lets those go on who wait for one.
func (n *Net) giveWord(l *link) {
	if l.word < 0 {
		return
	}
	n.free = append(n.free, l.word)
	l.word = -1
	list := n.starve
	n.starve = nil
	for _, s := range list {
		n.begin(s)
	}
}

// lose ends the way to a rank, with all operations on it.
func (n *Net) lose(l *link, why error) {
	if l.why != nil {
		return
	}
	l.why = fmt.Errorf("%w: %w", fabric.ErrLost, why)
	l.step = waiting
	n.giveWord(l)
	for op := l.pending.Pop(); op != nil; op = l.pending.Pop() {
		op.Owner.OpDone(op, l.why)
	}
	n.host.Lost(l.rank, l.why)
}

// signal delivers a message: the immediate data of a rank, or nothing of one that asks whether we are there. It has to
// come from the rank that it names, which we have met: nobody else has an end of a channel with us.
func (n *Net) signal(from *rdm.Peer, b []byte) {
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
	n.host.Signal(int(rank), binary.BigEndian.Uint32(b[4:]))
}
