package onesided

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

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

// dispatchPacket executes a packet.
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
		return w.handleFetchAddReply(h.ID, payload)
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
