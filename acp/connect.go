package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// progressConnect has a sending end go on with its connection: enter the request, see the answer.
func (ch *Channel) progressConnect() (watch bool) {
	if ch.connectPending {
		return false // what is under way tells when it is done
	}
	if ch.state == connecting {
		ch.enterRequest()
		return false
	}
	state := ch.controlWord(protocol.ReplyOffset) // visible last: the rest may be looked at behind it only
	if protocol.StateOf(state) == protocol.Pending {
		return true
	}
	switch a := protocol.ParseConnectReply([2]uint64{ch.controlWord(0), state}); a.State {
	case protocol.Accepted:
		if a.Slots == 0 || a.Control.Rank() != int(ch.peer) || a.Control.Offset() < uint64(a.Slots)*uint64(ch.size) {
			ch.failChannel(fmt.Errorf("%w: its end has %d slots at %v", ErrBroken, a.Slots, a.Control))
			return false
		}
		ch.remote, ch.remoteID = a.Control, a.ID
		ch.send.Connect(int(a.Slots))
		ch.primeConnection()
	case protocol.SizeMismatch:
		ch.failChannel(fmt.Errorf("%w: %d bytes here and %d at rank %d", ErrSlotSize, ch.size, a.SlotSize, ch.peer))
	case protocol.ModeMismatch:
		ch.failChannel(ErrMixed)
	default:
		ch.failChannel(fmt.Errorf("%w: answer %d", ErrBroken, a.State))
	}
	return false
}

// enterRequest tries to store the request in a word of the receiver's connection request buffer.
func (ch *Channel) enterRequest() {
	at := (int(ch.crbProbe) + ch.p.rank) % crbSlots
	a := ch.p.newAccess(protocol.Make(int(ch.peer), starterRegion, crbOffset+8*uint64(at)), 8, (*enterOp)(ch))
	a.Kind, a.Operand = fabric.CompareSwap, uint64(ch.mem.GA(ch.controlOffset()))
	ch.connectPending = true
	ch.p.startAccess(a)
}

// enterOp hears how a try to enter ends.
type enterOp Channel

func (e *enterOp) onAccessDone(a *access, err error) {
	ch := (*Channel)(e)
	ch.connectPending = false
	switch {
	case err != nil:
		ch.failChannel(fmt.Errorf("connecting: %w", err))
	case a.Old == 0:
		ch.state = requested
	default:
		ch.crbProbe++ // somebody else's: the next one
	}
	ch.p.channels.markActive(ch)
}

// primeConnection writes nothing to the receiver's memory, so that it is known from now on where that is: a send is
// complete when its message is in a slot, and must not need the program any more to leave from there.
func (ch *Channel) primeConnection() {
	a := ch.p.newAccess(ch.remote, 0, (*primeOp)(ch))
	a.Kind = fabric.Put
	ch.connectPending = true
	ch.p.startAccess(a)
}

// primeOp hears that it is known.
type primeOp Channel

func (e *primeOp) onAccessDone(_ *access, err error) {
	ch := (*Channel)(e)
	ch.connectPending = false
	if ch.state = open; err != nil {
		ch.failChannel(fmt.Errorf("connecting: %w", err))
	}
	ch.p.channels.markActive(ch)
}

// acceptRequest has a receiving end answer a request.
func (ch *Channel) acceptRequest(q connectRequest) {
	ch.remote, ch.remoteID = q.control, q.ID
	a := protocol.ConnectReply{State: protocol.Accepted, Control: ch.mem.GA(ch.controlOffset()), Slots: uint32(ch.slotCount()), ID: ch.id}
	var err error
	switch {
	case q.SlotSize != ch.size:
		a.State, a.SlotSize = protocol.SizeMismatch, ch.size
		err = fmt.Errorf("%w: %d bytes here and %d at rank %d", ErrSlotSize, ch.size, q.SlotSize, ch.peer)
	case q.Imm != ch.imm:
		a.State, err = protocol.ModeMismatch, ErrMixed
	}
	ch.outstanding++
	ch.p.startAccess(ch.p.newTwoWordPut(q.control, a.EncodeWords(), (*controlOp)(ch)))
	if err != nil || ch.err != nil {
		ch.failChannel(err)
		return
	}
	ch.state, ch.hasBoard = open, q.Board
	ch.p.channels.markActive(ch)
}

// controlOp hears that the answer is there, or a signal.
type controlOp Channel

func (e *controlOp) onAccessDone(_ *access, err error) {
	ch := (*Channel)(e)
	ch.outstanding--
	if err != nil {
		ch.failChannel(err)
	}
	ch.p.channels.markActive(ch)
}
