package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Receive starts a receive: it matches an unexpected message or posts the request.
func (c *Core) Receive(r *Request) {
	c.enter()
	defer c.exit()
	if c.failCause != nil {
		c.complete(r, c.failCause)
		return
	}
	if n := c.unexpected.FindMessage(r.Envelope); n != nil {
		c.dequeueUnexpected(n.Item)
		r.WasUnexpected = true
		c.startReceive(r, n.Item)
		return
	}
	if err := c.SourceError(r.Envelope, r.Sources); err != nil {
		c.complete(r, err)
		return
	}
	r.state = stateUnmatched
	r.node.Item, r.node.Envelope = r, r.Envelope
	c.posted.Push(&r.node)
}

// Probe returns the unexpected message that a receive would match, or nil. With take,
// the message leaves the queue and is the caller's, for ReceiveMessage (MPI_Mprobe);
// without, the result is valid until the next call of the Core. See also SourceError.
func (c *Core) Probe(e match.Envelope, take bool) *Message {
	n := c.unexpected.FindMessage(e)
	if n == nil {
		return nil
	}
	if take {
		c.enter()
		defer c.exit()
		c.dequeueUnexpected(n.Item)
	}
	return n.Item
}

// ReceiveMessage starts the receive of a message that Probe took. It is called once.
func (c *Core) ReceiveMessage(r *Request, m *Message) {
	c.enter()
	defer c.exit()
	c.startReceive(r, m)
}

// Cancel cancels a posted receive, and reports whether it was unmatched.
func (c *Core) Cancel(r *Request) bool {
	if !r.node.Queued() {
		return false
	}
	c.enter()
	defer c.exit()
	c.posted.Remove(&r.node)
	c.complete(r, ErrCanceled)
	return true
}

// matchPosted removes a receive from the posted queue and records its message.
func (c *Core) matchPosted(r *Request, e match.Envelope, length uint64) {
	c.Stats.Expected++
	c.posted.Remove(&r.node)
	r.Received, r.length = e, length
}

// startReceive gives a receive its message, and consumes the message.
func (c *Core) startReceive(r *Request, m *Message) {
	r.Received, r.length = m.Envelope, m.Length
	switch {
	case m.selfSend != nil:
		r.SentSignature = m.selfSend.Signature
		c.copyAndComplete(r, m.selfSend.Buf)
		c.complete(m.selfSend, nil)
	case m.header.Kind == envelope.Eager:
		r.SentSignature = m.header.Signature(m.data)
		c.sendMatched(&m.header)
		c.copyAndComplete(r, m.data)
	default:
		r.SentSignature = m.header.Signature(m.data)
		c.startRendezvous(r, &m.header, m.data)
	}
	c.recycleMessage(m)
}

// sendMatched replies MATCHED to a synchronous eager message.
func (c *Core) sendMatched(h *envelope.Header) {
	if h.Flags&envelope.Synchronous != 0 {
		c.enqueue(int(h.Source), sendOp{op: opReply, kind: envelope.Matched, id: h.ID})
	}
}

// copyAndComplete copies a complete message to its receive.
func (c *Core) copyAndComplete(r *Request, data []byte) {
	r.Bytes = copy(r.Buf, data)
	c.complete(r, nil)
}

// startRendezvous starts the transfer of a message announced by an RTS.
func (c *Core) startRendezvous(r *Request, h *envelope.Header, payload []byte) {
	r.peer, r.remoteID = int32(h.Source), h.ID
	r.Bytes = int(min(h.Length, uint64(len(r.Buf))))
	o := sendOp{op: opCTS, r: r}
	switch h.Flags {
	case envelope.ByCopy:
		r.scheme = RendezvousCopy
	case envelope.ByWrite:
		r.scheme = RendezvousWrite
	default:
		if r.Bytes == 0 {
			c.enqueue(int(r.peer), sendOp{op: opReply, kind: envelope.FIN, id: r.remoteID})
			c.complete(r, nil)
			return
		}
		_ = r.key.Unmarshal(payload) // Header.Unmarshal checked the length
		r.scheme, o.op = RendezvousRead, opRead
	}
	c.enqueue(int(r.peer), o)
}

// readMessage reads a message from the sender's memory by RDMA.
func (c *Core) readMessage(from int, r *Request) bool {
	c.requests.add(r)
	switch err := c.net.RDMARead(from, r.Buf[:r.Bytes], r.key, r.id); {
	case err == ErrNoRoom:
		return false
	case err == nil:
		r.state = stateReading
		return true
	}
	if r.scheme != RendezvousCopy {
		c.Stats.Repacked++
		r.scheme = RendezvousCopy
	}
	return c.sendCTS(from, r)
}

// sendCTS asks the sender of an RTS for its message.
func (c *Core) sendCTS(to int, r *Request) bool {
	c.requests.add(r)
	if r.scheme == RendezvousWrite && r.exposed == nil && r.Bytes > 0 {
		var err error
		if r.key, r.exposed, err = c.net.RegisterMemory(to, r.Buf[:r.Bytes], true); err != nil {
			c.Stats.Repacked++
			r.scheme = RendezvousCopy
		}
	}
	h := c.newHeader(envelope.CTS, r.remoteID)
	h.Length, h.Bytes = uint64(r.Bytes), envelope.KeySize
	key := envelope.Key{}
	if r.exposed != nil {
		key, h.Flags = r.key, envelope.ByWrite
	}
	key.ID = r.id
	key.MarshalTo(c.key[:])
	if !c.sendPacket(to, h, c.key[:]) {
		return false
	}
	switch {
	case r.Bytes == 0:
		c.complete(r, nil)
	case r.exposed != nil:
		r.state = stateAwaitWrite
	default:
		r.state = stateAwaitData
	}
	return true
}

// handleData handles a DATA packet, a segment of a message.
func (c *Core) handleData(from int, h *envelope.Header, payload []byte) error {
	r, err := c.lookupRequest(from, h)
	if err != nil {
		return err
	}
	if r.state != stateAwaitData && r.state != stateAwaitWrite {
		return stateError(from, h)
	}
	end := h.Length + uint64(len(payload))
	if end > uint64(r.Bytes) {
		return fmt.Errorf("%w: rank %d: DATA for range [%d, %d) of %d bytes", ErrProtocol, from, h.Length, end, r.Bytes)
	}
	if !r.received.add(h.Length, end) {
		return fmt.Errorf("%w: rank %d: DATA for range [%d, %d) is a duplicate or exceeds the reordering limit", ErrProtocol, from, h.Length, end)
	}
	r.state = stateAwaitData // also after a CTS with memory: the sender could not write
	copy(r.Buf[h.Length:], payload)
	if r.received.prefix == uint64(r.Bytes) {
		c.complete(r, nil)
	}
	return nil
}
