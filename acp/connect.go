package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// stepConnect has a sending end go on with its connection: enter the request, see the answer.
func (ch *Channel) stepConnect() (watch bool) {
	if ch.asks {
		return false // what is under way tells when it is done
	}
	if ch.state == connecting {
		ch.enter()
		return false
	}
	state := ch.control(protocol.AnswerOffset) // visible last: the rest may be looked at behind it only
	if protocol.StateOf(state) == protocol.Asking {
		return true
	}
	switch a := protocol.ParseAnswer([2]uint64{ch.control(0), state}); a.State {
	case protocol.Accepted:
		if a.Slots == 0 || a.Control.Rank() != int(ch.peer) || a.Control.Offset() < uint64(a.Slots)*uint64(ch.size) {
			ch.fail(fmt.Errorf("%w: its end has %d slots at %v", ErrBroken, a.Slots, a.Control))
			return false
		}
		ch.remote, ch.far = a.Control, a.ID
		ch.send.Connect(int(a.Slots))
		ch.touch()
	case protocol.Refused:
		ch.fail(fmt.Errorf("%w: %d bytes here and %d at rank %d", ErrSlotSize, ch.size, a.SlotSize, ch.peer))
	case protocol.Mixed:
		ch.fail(ErrMixed)
	default:
		ch.fail(fmt.Errorf("%w: answer %d", ErrBroken, a.State))
	}
	return false
}

// enter tries to store the request in a word of the receiver's connection request buffer.
func (ch *Channel) enter() {
	at := (int(ch.probe) + ch.p.rank) % crbSlots
	a := ch.p.newAccess(protocol.Make(int(ch.peer), starterRegion, crbOffset+8*uint64(at)), 8, (*entering)(ch))
	a.Kind, a.Operand = fabric.CompareSwap, uint64(ch.mem.GA(ch.base()))
	ch.asks = true
	ch.p.start(a)
}

// entering hears how a try to enter ends.
type entering Channel

func (e *entering) accessed(a *access, err error) {
	ch := (*Channel)(e)
	ch.asks = false
	switch {
	case err != nil:
		ch.fail(fmt.Errorf("connecting: %w", err))
	case a.Old == 0:
		ch.state = entered
	default:
		ch.probe++ // somebody else's: the next one
	}
	ch.p.channels.activate(ch)
}

// touch writes nothing to the receiver's memory, so that it is known from now on where that is: a send is
// complete when its message is in a slot, and must not need the program any more to leave from there.
func (ch *Channel) touch() {
	a := ch.p.newAccess(ch.remote, 0, (*touching)(ch))
	a.Kind = fabric.Put
	ch.asks = true
	ch.p.start(a)
}

// touching hears that it is known.
type touching Channel

func (e *touching) accessed(_ *access, err error) {
	ch := (*Channel)(e)
	ch.asks = false
	if ch.state = open; err != nil {
		ch.fail(fmt.Errorf("connecting: %w", err))
	}
	ch.p.channels.activate(ch)
}

// accept has a receiving end answer a request.
func (ch *Channel) accept(q asked) {
	ch.remote, ch.far = q.control, q.ID
	a := protocol.Answer{State: protocol.Accepted, Control: ch.mem.GA(ch.base()), Slots: uint32(ch.slots()), ID: ch.id}
	var err error
	switch {
	case q.SlotSize != ch.size:
		a.State, a.SlotSize = protocol.Refused, ch.size
		err = fmt.Errorf("%w: %d bytes here and %d at rank %d", ErrSlotSize, ch.size, q.SlotSize, ch.peer)
	case q.Imm != ch.imm:
		a.State, err = protocol.Mixed, ErrMixed
	}
	ch.under++
	ch.p.start(ch.p.putWords(q.control, a.Words(), (*answering)(ch)))
	if err != nil || ch.err != nil {
		ch.fail(err)
		return
	}
	ch.state, ch.board = open, q.Board
	ch.p.channels.activate(ch)
}

// answering hears that the answer is there, or a signal.
type answering Channel

func (e *answering) accessed(_ *access, err error) {
	ch := (*Channel)(e)
	ch.under--
	if err != nil {
		ch.fail(err)
	}
	ch.p.channels.activate(ch)
}
