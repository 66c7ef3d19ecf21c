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
	packetFetchAdd
	packetFetchAddReply
	packetAckRequest
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

// isAccumulate reports whether elements are combined with others.
func (k winPacket) isAccumulate() bool { return k >= packetAccumulate && k <= packetCompareAndSwap }

// encodeTag is what a packet is for, and what its elements are.
func (k winPacket) encodeTag(kind datatype.Kind, op Op) int32 {
	code, _ := op.Code()
	return int32(k) | int32(kind)<<8 | int32(code)<<16
}

// sendSignal tells a rank something.
func (w *Win) sendSignal(core *protocol.Core, p *winPeer, k winPacket, id uint64) {
	// If the rank is lost, so is the window, which is told otherwise.
	_ = core.SendActive(p.job, envelope.Header{Context: w.comm.contextID, Tag: int32(k), ID: id}, nil)
}

var errUnexpectedReply = fmt.Errorf("%w: a reply to nothing", protocol.ErrProtocol)

// recvState is what a rank does here.
type recvState struct {
	received     uint64 // packets without a Reply
	handled      uint64 // of them
	ackRequested bool   // Ack is wanted
	messages     int    // that come into the memory here, or go out of it
}

// maxReplies is how many packets of windows may wait for room on the way to a rank
// that asks for replies, and how many messages it may have under way here: many more
// than it asks for in a window at a time.
const maxReplies = 1 << 14

// maxMessages is how many messages a rank has under way to another, or from there.
// It knows of their end sooner than the other one may, and so keeps away from
// maxReplies.
const maxMessages = maxReplies / 4

// handlePacket handles a packet of a rank. An error is a breach of the protocol.
func (w *Win) handlePacket(core *protocol.Core, p *winPeer, h *envelope.Header, payload []byte) error {
	if core.ActiveBacklog(p.job) > maxReplies {
		return fmt.Errorf("window %s: %w: more replies are asked for than are taken", w.Name(), protocol.ErrProtocol)
	}
	err := w.dispatchPacket(core, p, winPacket(h.Tag), h, payload)
	if err != nil {
		return fmt.Errorf("window %s: %w", w.Name(), err)
	}
	if h.Flags&envelope.Synchronous != 0 {
		p.recvState.ackRequested = true
	}
	w.sendDueAck(core, p)
	return nil
}

func (w *Win) dispatchPacket(core *protocol.Core, p *winPeer, k winPacket, h *envelope.Header, payload []byte) error {
	switch k {
	case packetPut, packetGet, packetAccumulate, packetGetAccumulate, packetCompareAndSwap:
		return w.serveAccess(core, p, k, h, payload)
	case packetSend, packetFetch:
		return w.serveMessage(core, p, k, h, payload)
	case packetReply:
		return w.handleReply(core, p, h, payload)
	case packetFetchAdd:
		return w.serveLockWord(core, p, h)
	case packetFetchAddReply:
		then := w.pendingFetchAdds[h.ID]
		if then == nil || len(payload) != 8 {
			return errUnexpectedReply
		}
		delete(w.pendingFetchAdds, h.ID)
		then(binary.LittleEndian.Uint64(payload))
	case packetAckRequest:
		p.recvState.ackRequested = true
	case packetAck:
		return w.handleAck(core, p, h.ID)
	case packetPost:
		p.epoch.posts++
	case packetComplete:
		p.epoch.ends++
	case packetFence:
		if h.ID >= uint64(len(w.barrierSignals)) {
			return fmt.Errorf("%w: round %d of a fence", protocol.ErrProtocol, h.ID)
		}
		w.barrierSignals[h.ID]++
	case packetBroken:
		return w.handleBroken(p, h.ID)
	case packetFind, packetFound, packetMissing, packetRecall, packetReturned:
		return w.dispatchRegion(core, p, k, h, payload)
	default:
		return fmt.Errorf("%w: packet %d", protocol.ErrProtocol, k)
	}
	return nil
}

// sendDueAck tells a rank that all that came of it has been dealt with, if it wants to
// know.
func (w *Win) sendDueAck(core *protocol.Core, p *winPeer) {
	if p.recvState.ackRequested && p.recvState.handled == p.recvState.received {
		p.recvState.ackRequested = false
		w.sendSignal(core, p, packetAck, p.recvState.handled)
	}
}
