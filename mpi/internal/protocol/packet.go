package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// HandlePacket handles a packet of another rank, whose header was read by
// envelope.Header.Unmarshal without an error. The payload is not kept. A non-nil error
// is a protocol violation or exceeds a limit: the caller disconnects the rank and calls
// FailPeer.
func (c *Core) HandlePacket(from int, h *envelope.Header, payload []byte) error {
	c.enter()
	defer c.exit()
	p := c.peers.Get(from)
	switch {
	case p.err != nil:
		c.Stats.Dropped++
		return nil
	case int(h.Source) != from || uint64(h.Bytes) != uint64(len(payload)):
		return fmt.Errorf("%w: rank %d: %v of rank %d with %d bytes, payload has %d", ErrProtocol, from, h.Kind, h.Source, h.Bytes, len(payload))
	case !h.Kind.Ordered():
		return c.handleUnordered(from, h, payload)
	case h.Seq != p.recvSeq:
		return c.bufferEarly(from, p, h, payload)
	}
	p.recvSeq++
	if err := c.handleOrdered(from, h, payload, nil); err != nil {
		return err
	}
	return c.releaseEarly(from, p)
}

// handleUnordered handles a packet whose kind has no sequence number.
func (c *Core) handleUnordered(from int, h *envelope.Header, payload []byte) error {
	switch h.Kind {
	case envelope.CTS:
		return c.handleCTS(from, h, payload)
	case envelope.Data:
		return c.handleData(from, h, payload)
	case envelope.FIN, envelope.Matched:
		return c.handleFinish(from, h)
	case envelope.Throttle:
		c.handleThrottle(from, h)
	}
	return nil // the other kinds are handled by the fabric
}

// handleFinish handles a FIN or MATCHED, which completes a request.
func (c *Core) handleFinish(from int, h *envelope.Header) error {
	r, err := c.lookupRequest(from, h)
	if err != nil {
		return err
	}
	switch {
	case h.Kind == envelope.Matched && r.state == stateAwaitMatched,
		h.Kind == envelope.FIN && r.state == stateAwaitWrite,
		h.Kind == envelope.FIN && r.state == stateRTSSent && r.scheme == RendezvousRead:
		c.complete(r, nil)
		return nil
	}
	return stateError(from, h)
}

// lookupRequest returns the request of the number in h, if its peer is from.
func (c *Core) lookupRequest(from int, h *envelope.Header) (*Request, error) {
	if r := c.requests.get(h.ID); r != nil && int(r.peer) == from {
		return r, nil
	}
	return nil, fmt.Errorf("%w: rank %d: %v for unknown request %#x", ErrProtocol, from, h.Kind, h.ID)
}

// stateError returns the error of a packet that does not fit the state of its request.
func stateError(from int, h *envelope.Header) error {
	return fmt.Errorf("%w: rank %d: %v does not fit the state of request %#x", ErrProtocol, from, h.Kind, h.ID)
}

// Bounds of reordering: packets of a rank that may overtake a packet sent earlier, and
// the bytes of them that are buffered.
const (
	MaxEarly      = 1 << 12
	MaxEarlyBytes = 64 << 20
)

// bufferEarly buffers a packet that arrived before its predecessor, over another route.
func (c *Core) bufferEarly(from int, p *peer, h *envelope.Header, payload []byte) error {
	ahead := h.Seq - p.recvSeq
	switch {
	case ahead > MaxEarly:
		return fmt.Errorf("%w: rank %d: %v with sequence number %d, next is %d", ErrProtocol, from, h.Kind, h.Seq, p.recvSeq)
	case p.early[h.Seq] != nil:
		return fmt.Errorf("%w: rank %d: duplicate sequence number %d", ErrProtocol, from, h.Seq)
	case p.earlyBytes+len(payload) > MaxEarlyBytes:
		return fmt.Errorf("%w: rank %d: more than %d bytes ahead of sequence number %d", ErrProtocol, from, MaxEarlyBytes, p.recvSeq)
	}
	if p.early == nil {
		p.early = make(map[uint32]*Message)
	}
	c.Stats.Early++
	p.early[h.Seq] = c.newMessage(h, payload)
	p.earlyBytes += len(payload)
	return nil
}

// releaseEarly handles the buffered packets that are next in sequence.
func (c *Core) releaseEarly(from int, p *peer) error {
	for len(p.early) > 0 {
		m := p.early[p.recvSeq]
		if m == nil {
			break
		}
		delete(p.early, p.recvSeq)
		p.earlyBytes -= len(m.data)
		p.recvSeq++
		if err := c.handleOrdered(from, &m.header, m.data, m); err != nil {
			return err
		}
	}
	return nil
}

// handleOrdered handles the next packet in sequence. If the packet was buffered, m is
// its message and is consumed; otherwise m is nil.
func (c *Core) handleOrdered(from int, h *envelope.Header, payload []byte, m *Message) error {
	if h.Kind != envelope.Active {
		e := match.Envelope{Context: h.Context, Source: int32(from), Tag: h.Tag}
		n := c.posted.FindReceive(e)
		if n == nil {
			if m == nil {
				m = c.newMessage(h, payload)
			}
			sign := h.Signature(payload)
			if err := c.queueUnexpected(from, m); err != nil || sign == 0 || c.OnSignature == nil {
				return err
			}
			c.OnSignature(from, e, sign, nil)
			return nil
		}
		r := n.Item
		c.matchPosted(r, e, h.Length)
		r.SentSignature = h.Signature(payload)
		if r.SentSignature != r.Signature && r.SentSignature != 0 && r.Signature != 0 && c.OnSignature != nil {
			c.OnSignature(from, e, r.SentSignature, r)
		}
		if h.Kind == envelope.Eager {
			c.sendMatched(h)
			c.copyAndComplete(r, payload)
		} else {
			c.startRendezvous(r, h, payload)
		}
	} else if err := c.callHandler(from, h, payload); err != nil {
		return err
	}
	if m != nil {
		c.recycleMessage(m)
	}
	return nil
}
