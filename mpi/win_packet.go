package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Packets of windows are Active: Context is the window's number, Tag says what
// they are for.
//
//	packet          ID          Length              payload
//	Put             -           -                   target, elements
//	Get             operation   where in its result target
//	Accumulate      -           -                   target, elements
//	GetAccumulate   operation   where in its result target, elements
//	CompareAndSwap  operation   0                   target, element, comparand
//	Reply           operation   where in its result bytes
//	Send            tag         bytes               target: a message follows that belongs there
//	Fetch           tag         bytes               target: it is to be sent as a message
//	Word            number      what to add         none, in place of a kind: a word of the lock. Was is wanted, if there is a number
//	Was             number      -                   what was there before
//	Ask             -           -                   none: Ack is wanted
//	Ack             how many packets without a Reply have been dealt with, of all
//	Post, Complete  -           -                   none
//	Fence           round       -                   none
//	Broken          rank        -                   none: it is lost
//	Find            question    -                   rma.Span: where is it?
//	Found           question    -                   found
//	Missing         question    -                   missing: nowhere
//	Recall          piece       address             none: it is to be forgotten
//	Returned        piece       -                   none: it is
//
// In a dynamic window the number of a piece, 8 bytes, comes before the target.
//
// Synchronous asks for Ack as soon as all that came so far has been dealt with.
type winPacket uint8

const (
	packetPut winPacket = iota + 1
	packetGet
	packetAccumulate
	packetGetAccumulate
	packetCompareAndSwap
	packetReply
	packetSend
	packetFetch
	packetWord
	packetWas
	packetAsk
	packetAck
	packetPost
	packetComplete
	packetFence
	packetBroken
	packetFind
	packetFound
	packetMissing
	packetRecall
	packetReturned
)

// combines reports whether elements are combined with others.
func (k winPacket) combines() bool { return k >= packetAccumulate && k <= packetCompareAndSwap }

// tag is what a packet is for, and what its elements are.
func (k winPacket) tag(kind datatype.Kind, op Op) int32 {
	code, _ := op.Code()
	return int32(k) | int32(kind)<<8 | int32(code)<<16
}

// signal tells a rank something.
func (w *Win) signal(core *protocol.Core, p *winPeer, k winPacket, id uint64) {
	// If the rank is lost, so is the window, which is told otherwise.
	_ = core.SendActive(p.job, envelope.Header{Context: w.comm.id, Tag: int32(k), ID: id}, nil)
}

var errReply = fmt.Errorf("%w: a reply to nothing", protocol.ErrProtocol)

// inlet is what a rank does here.
type inlet struct {
	received uint64 // packets without a Reply
	handled  uint64 // of them
	asked    bool   // Ack is wanted
	messages int    // that come into the memory here, or go out of it
}

// maxReplies is how many packets of windows may wait for room on the way to a rank
// that asks for replies, and how many messages it may have under way here: many more
// than it asks for in a window at a time.
const maxReplies = 1 << 14

// maxMessages is how many messages a rank has under way to another, or from there.
// It knows of their end sooner than the other one may, and so keeps away from
// maxReplies.
const maxMessages = maxReplies / 4

// handle handles a packet of a rank. An error is a breach of the protocol.
func (w *Win) handle(core *protocol.Core, p *winPeer, h *envelope.Header, payload []byte) error {
	if core.ActiveBacklog(p.job) > maxReplies {
		return fmt.Errorf("window %s: %w: more replies are asked for than are taken", w.Name(), protocol.ErrProtocol)
	}
	err := w.dispatch(core, p, winPacket(h.Tag), h, payload)
	if err != nil {
		return fmt.Errorf("window %s: %w", w.Name(), err)
	}
	if h.Flags&envelope.Synchronous != 0 {
		p.in.asked = true
	}
	w.ack(core, p)
	return nil
}

func (w *Win) dispatch(core *protocol.Core, p *winPeer, k winPacket, h *envelope.Header, payload []byte) error {
	switch k {
	case packetPut, packetGet, packetAccumulate, packetGetAccumulate, packetCompareAndSwap:
		return w.serve(core, p, k, h, payload)
	case packetSend, packetFetch:
		return w.serveMessage(core, p, k, h, payload)
	case packetReply:
		return w.replied(core, p, h, payload)
	case packetWord:
		return w.serveWord(core, p, h)
	case packetWas:
		then := w.asked[h.ID]
		if then == nil || len(payload) != 8 {
			return errReply
		}
		delete(w.asked, h.ID)
		then(binary.LittleEndian.Uint64(payload))
	case packetAsk:
		p.in.asked = true
	case packetAck:
		return w.acked(core, p, h.ID)
	case packetPost:
		p.epoch.posts++
	case packetComplete:
		p.epoch.ends++
	case packetFence:
		if h.ID >= uint64(len(w.fences)) {
			return fmt.Errorf("%w: round %d of a fence", protocol.ErrProtocol, h.ID)
		}
		w.fences[h.ID]++
	case packetBroken:
		return w.told(p, h.ID)
	case packetFind, packetFound, packetMissing, packetRecall, packetReturned:
		return w.dispatchPiece(core, p, k, h, payload)
	default:
		return fmt.Errorf("%w: packet %d", protocol.ErrProtocol, k)
	}
	return nil
}

// ack tells a rank that all that came of it has been dealt with, if it wants to
// know.
func (w *Win) ack(core *protocol.Core, p *winPeer) {
	if p.in.asked && p.in.handled == p.in.received {
		p.in.asked = false
		w.signal(core, p, packetAck, p.in.handled)
	}
}
