package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// progressConnect advances the connection of a sending end: enter the request, poll for the reply.
func (ch *Channel) progressConnect() (watch bool) {
	if ch.connectPending {
		return false // its completion activates the channel
	}
	if ch.state == connecting {
		ch.enterRequest()
		return false
	}
	state := ch.controlWord(protocol.ReplyOffset) // becomes visible last, so it must be read before the other word
	if protocol.StateOf(state) == protocol.Pending {
		return true
	}
	switch a := protocol.ParseConnectReply([2]uint64{ch.controlWord(0), state}); a.State {
	case protocol.Accepted:
		if a.Slots == 0 || a.Control.Rank() != int(ch.peer) || a.Control.Offset() < uint64(a.Slots)*uint64(ch.size) {
			ch.failChannel(fmt.Errorf("%w: reply with %d slots at %v", ErrBroken, a.Slots, a.Control))
			return false
		}
		ch.remote, ch.remoteID = a.Control, a.ID
		ch.send.Connect(int(a.Slots))
		ch.primeConnection()
	case protocol.SizeMismatch:
		ch.failChannel(fmt.Errorf("%w: %d bytes here, %d at rank %d", ErrSlotSize, ch.size, a.SlotSize, ch.peer))
	case protocol.ModeMismatch:
		ch.failChannel(ErrMixed)
	default:
		ch.failChannel(fmt.Errorf("%w: reply with state %d", ErrBroken, a.State))
	}
	return false
}

// enterRequest tries to store the request in a word of the receiver's connection request buffer by
// compare-and-swap.
func (ch *Channel) enterRequest() {
	slot := (int(ch.crbProbe) + ch.p.rank) % crbSlots
	a := ch.p.newAccess(protocol.Make(int(ch.peer), starterRegion, crbOffset+8*uint64(slot)), 8, (*enterOp)(ch))
	a.Kind, a.Operand = fabric.CompareSwap, uint64(ch.mem.GA(ch.controlOffset()))
	ch.connectPending = true
	ch.p.startAccess(a)
}

// enterOp is the Channel of enterRequest as the accessOwner of its compare-and-swap.
type enterOp Channel

func (e *enterOp) onAccessDone(a *access, err error) {
	ch := (*Channel)(e)
	ch.connectPending = false
	switch {
	case err != nil:
		ch.failChannel(fmt.Errorf("connect: %w", err))
	case a.Old == 0:
		ch.state = requested
	default:
		ch.crbProbe++ // the word is in use: try the next one
	}
	ch.p.channels.markActive(ch)
}

// primeConnection issues a zero-length write to the receiver, which resolves its address. A send is complete
// when its message is in a slot, so sending it later must not depend on calls of the program.
func (ch *Channel) primeConnection() {
	a := ch.p.newAccess(ch.remote, 0, (*primeOp)(ch))
	a.Kind = fabric.Put
	ch.connectPending = true
	ch.p.startAccess(a)
}

// primeOp is the Channel of primeConnection as the accessOwner of its write.
type primeOp Channel

func (e *primeOp) onAccessDone(_ *access, err error) {
	ch := (*Channel)(e)
	ch.connectPending = false
	if ch.state = open; err != nil {
		ch.failChannel(fmt.Errorf("connect: %w", err))
	}
	ch.p.channels.markActive(ch)
}

// acceptRequest replies to a connection request, and opens the receiving end if the parameters match.
func (ch *Channel) acceptRequest(q connectRequest) {
	ch.remote, ch.remoteID = q.control, q.ID
	a := protocol.ConnectReply{State: protocol.Accepted, Control: protocol.GA(ch.mem.GA(ch.controlOffset())), Slots: uint32(ch.slotCount()), ID: ch.id}
	var err error
	switch {
	case q.SlotSize != ch.size:
		a.State, a.SlotSize = protocol.SizeMismatch, ch.size
		err = fmt.Errorf("%w: %d bytes here, %d at rank %d", ErrSlotSize, ch.size, q.SlotSize, ch.peer)
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

// controlOp is a Channel as the accessOwner of writes to the other end's control block and of signals.
type controlOp Channel

func (e *controlOp) onAccessDone(_ *access, err error) {
	ch := (*Channel)(e)
	ch.outstanding--
	if err != nil {
		ch.failChannel(err)
	}
	ch.p.channels.markActive(ch)
}
