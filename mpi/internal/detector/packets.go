package detector

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// HandlePacket handles a packet of the detector of another rank, an active message with the
// context deadlock.PacketContext. An error is a protocol violation. The caller holds the engine's
// lock.
func (d *Detector) HandlePacket(from int, h *envelope.Header, payload []byte) error {
	core := d.engine.Core()
	switch h.Tag {
	case deadlock.PacketProbe:
		d.handleProbe(core, from)
		if len(payload) > 0 {
			return d.calls.HandlePacket(from, h, payload)
		}
	case deadlock.PacketMismatch:
		d.SendPacket(core, from, envelope.Header{Tag: deadlock.PacketConfirm}, nil)
		return d.calls.HandlePacket(from, h, payload)
	case deadlock.PacketCallEnded:
		return d.calls.HandlePacket(from, h, payload)
	case deadlock.PacketConfirm:
		d.handleConfirm(core, from)
	case deadlock.PacketFlush:
		d.handleFlush(core, from, nil)
	case deadlock.PacketFlushed:
		d.handleFlushReply(core, from)
	case deadlock.PacketDepart:
		d.handleFlush(core, from, parseDeparture(h, payload))
	case deadlock.PacketRankLost:
		return d.handleRankLost(from, h.ID, h.Length, payload)
	case deadlock.PacketAlarm:
		d.SendPacket(core, from, envelope.Header{Tag: deadlock.PacketAlarmAck}, nil)
		d.handleAlarm(core, reportReason(h.Length))
	case deadlock.PacketAlarmAck:
		d.fallbackAt = time.Time{}
	case deadlock.PacketStateQuery:
		d.handleQuery(from, h.ID)
	case deadlock.PacketState:
		return d.handleStatePart(from, h, payload)
	default:
		return fmt.Errorf("%w: unknown detector packet %d", protocol.ErrProtocol, h.Tag)
	}
	return nil
}

// SendPacket sends a packet to another detector. It ignores the error of a lost rank, which
// HandleRankLost reports. The caller holds the engine's lock.
func (d *Detector) SendPacket(core *protocol.Core, to int, h envelope.Header, payload []byte) {
	h.Context = deadlock.PacketContext
	_ = core.SendActive(to, h, payload)
}
