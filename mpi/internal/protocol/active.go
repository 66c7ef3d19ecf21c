package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// SendActive sends a packet to the Handler of a rank, ordered after all earlier
// messages. The caller sets Context, Tag, Length, ID and Flags of the header. The
// payload is copied or sent before SendActive returns; more than Limits.Eager bytes are
// an ErrTooLong. For the own rank the Handler is called at once.
func (c *Core) SendActive(to int, h envelope.Header, payload []byte) error {
	c.enter()
	defer c.exit()
	p := c.peers.Get(to)
	if p.err != nil {
		return p.err
	}
	h.Kind, h.Source, h.Bytes = envelope.Active, uint32(c.rank), uint32(len(payload))
	if to == c.rank {
		own := h
		return c.callHandler(to, &own, payload)
	}
	if limit := c.net.Limits(to).Eager; len(payload) > limit {
		return fmt.Errorf("%w: %d bytes for the handler of rank %d, limit %d", ErrTooLong, len(payload), to, limit)
	}
	c.header = h
	if p.queue.Len() == 0 && c.trySendActive(to, &c.header, payload) {
		return nil
	}
	c.Stats.Stalled++
	p.queuedActives++
	p.queue.Push(sendOp{op: opActive, active: &activePacket{h, append([]byte(nil), payload...)}})
	return nil
}

func (c *Core) trySendActive(to int, h *envelope.Header, payload []byte) bool {
	p := c.peers.Get(to)
	h.Seq = p.sendSeq
	if !c.sendPacket(to, h, payload) {
		return false
	}
	p.sendSeq++
	return true
}

// callHandler passes an Active packet to the Handler.
func (c *Core) callHandler(from int, h *envelope.Header, payload []byte) error {
	if c.Handler == nil {
		c.Stats.Dropped++
		return nil
	}
	if err := c.Handler(from, h, payload); err != nil {
		return fmt.Errorf("%w: rank %d: %w", ErrProtocol, from, err)
	}
	return nil
}
