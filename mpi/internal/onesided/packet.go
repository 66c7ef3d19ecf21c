package onesided

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// packetType is the type of a packet of a window. Packets are active messages: Context is the
// context id of the window, Tag the type.
//
//	packet          ID         Length            payload
//	Put             -          -                 target, elements
//	Get             operation  offset in result  target
//	Accumulate      -          -                 target, elements
//	GetAccumulate   operation  offset in result  target, elements
//	CompareAndSwap  operation  0                 target, element, comparand
//	Reply           operation  offset in result  bytes
//	Send            tag        bytes             target: a message follows
//	Fetch           tag        bytes             target: request for a message
//	FetchAdd        id or 0    summand           none, the word of the lock in place of a kind; without id no reply
//	FetchAddReply   id         -                 old value
//	AckRequest      -          -                 none
//	Ack             number of handled packets without a Reply, cumulative
//	Post, Complete  -          -                 none
//	Fence           round      -                 none
//	Broken          rank       -                 none: the rank is lost
//	Find            query      -                 rma.Span: lookup of attached memory
//	Found           query      -                 foundReply
//	Missing         query      -                 missingReply
//	Recall          region     address           none: request to forget the region
//	Returned        region     -                 none: the reply
//
// In a dynamic window the id of a region, 8 bytes, precedes the target.
//
// Synchronous requests an Ack after all packets so far are handled.
type packetType uint8

const (
	packetPut packetType = iota + 1
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

// isAccumulate reports whether the packet combines elements with those at the target.
func (k packetType) isAccumulate() bool { return k >= packetAccumulate && k <= packetCompareAndSwap }

// encodeTag returns the Tag of a packet: its type, the element kind and the operation.
func (k packetType) encodeTag(kind datatype.Kind, op datatype.Op) int32 {
	code, _ := op.Code()
	return int32(k) | int32(kind)<<8 | int32(code)<<16
}

// sendSignal sends a packet without payload.
func (w *Window) sendSignal(core *protocol.Core, p *peer, k packetType, id uint64) {
	// Errors are ignored: if the rank is lost, onRankLost breaks the window.
	_ = core.SendActive(p.job, envelope.Header{Context: w.comm.ContextID, Tag: int32(k), ID: id}, nil)
}

var errUnexpectedReply = fmt.Errorf("%w: unexpected reply", protocol.ErrProtocol)

// recvState is the state of the packets received from a rank.
type recvState struct {
	received     uint64 // number of packets without a Reply
	handled      uint64 // of these, handled
	ackRequested bool   // an Ack is due when all are handled
	messages     int    // messages in progress to or from the memory here
}

// maxReplies is the maximum number of queued packets to a rank that requests replies, and of
// its messages in progress. A correct peer stays far below it.
const maxReplies = 1 << 14

// maxMessages is the maximum number of messages in progress from or to a rank. The origin
// learns of their completion before the target may, so it is far below maxReplies.
const maxMessages = maxReplies / 4

// handlePacket handles a packet of a rank. An error is a protocol violation.
func (w *Window) handlePacket(core *protocol.Core, p *peer, h *envelope.Header, payload []byte) error {
	if core.ActiveBacklog(p.job) > maxReplies {
		return fmt.Errorf("window %s: %w: more than %d replies queued", w.comm.Name(), protocol.ErrProtocol, maxReplies)
	}
	err := w.dispatchPacket(core, p, packetType(h.Tag), h, payload)
	if err != nil {
		return fmt.Errorf("window %s: %w", w.comm.Name(), err)
	}
	if h.Flags&envelope.Synchronous != 0 {
		p.recvState.ackRequested = true
	}
	w.sendDueAck(core, p)
	return nil
}

func (w *Window) dispatchPacket(core *protocol.Core, p *peer, k packetType, h *envelope.Header, payload []byte) error {
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
			return fmt.Errorf("%w: invalid fence round %d", protocol.ErrProtocol, h.ID)
		}
		w.barrierSignals[h.ID]++
	case packetBroken:
		return w.handleBroken(p, h.ID)
	case packetFind, packetFound, packetMissing, packetRecall, packetReturned:
		return w.dispatchRegion(core, p, k, h, payload)
	default:
		return fmt.Errorf("%w: unknown window packet %d", protocol.ErrProtocol, k)
	}
	return nil
}

// sendDueAck sends a requested Ack when all received packets are handled.
func (w *Window) sendDueAck(core *protocol.Core, p *peer) {
	if p.recvState.ackRequested && p.recvState.handled == p.recvState.received {
		p.recvState.ackRequested = false
		w.sendSignal(core, p, packetAck, p.recvState.handled)
	}
}
