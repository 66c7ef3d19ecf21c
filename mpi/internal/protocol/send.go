package protocol

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Send starts a send.
func (c *Core) Send(r *Request) {
	c.enter()
	defer c.exit()
	r.peer, r.Bytes = int32(r.Dest), len(r.Buf)
	if c.failCause != nil {
		c.complete(r, c.failCause)
		return
	}
	if r.Dest == c.rank {
		c.sendSelf(r)
		return
	}
	c.enqueue(r.Dest, sendOp{op: opMessage, r: r})
}

// sendMessage sends an eager message or an RTS, and reports whether the net accepted
// it.
func (c *Core) sendMessage(to int, r *Request) bool {
	limits := c.net.Limits(to)
	if len(r.Buf) <= limits.Eager && !c.peerState(to).announceAll {
		return c.sendEager(to, r)
	}
	if len(r.Buf) <= limits.Eager {
		limits.Rendezvous = RendezvousCopy // too short for RDMA
	}
	return c.sendRTS(to, r, limits.Rendezvous)
}

func (c *Core) sendEager(to int, r *Request) bool {
	p := c.peers.Get(to)
	h := c.newHeader(envelope.Eager, 0)
	h.Context, h.Tag, h.Length, h.Bytes, h.Seq = r.Envelope.Context, r.Envelope.Tag, uint64(len(r.Buf)), uint32(len(r.Buf)), p.sendSeq
	if r.Sync {
		c.requests.add(r)
		h.ID, h.Flags = r.id, envelope.Synchronous
	}
	h.SetSignature(r.Signature)
	if !c.sendPacket(to, h, r.Buf) {
		return false
	}
	p.sendSeq++
	c.Stats.Eager++
	if r.Sync {
		r.state = stateAwaitMatched
	} else {
		c.complete(r, p.err)
	}
	return true
}

// sendRTS announces a message.
func (c *Core) sendRTS(to int, r *Request, scheme Scheme) bool {
	p := c.peers.Get(to)
	if scheme == RendezvousRead && r.exposed == nil {
		var err error
		if r.key, r.exposed, err = c.net.RegisterMemory(to, r.Buf, false); err != nil {
			c.Stats.Repacked++
			scheme = RendezvousCopy
		}
	}
	c.requests.add(r)
	h := c.newHeader(envelope.RTS, r.id)
	h.Context, h.Tag, h.Length, h.Seq = r.Envelope.Context, r.Envelope.Tag, uint64(len(r.Buf)), p.sendSeq
	var payload []byte
	switch scheme {
	case RendezvousRead:
		r.key.ID = r.Signature
		r.key.MarshalTo(c.key[:])
		payload = c.key[:]
	case RendezvousWrite:
		h.Flags = envelope.ByWrite
	case RendezvousCopy:
		h.Flags = envelope.ByCopy
	}
	if scheme != RendezvousRead && r.Signature != 0 {
		payload = c.key[:envelope.SignatureSize]
		binary.LittleEndian.PutUint64(payload, r.Signature)
	}
	h.Bytes = uint32(len(payload))
	if !c.sendPacket(to, h, payload) {
		return false
	}
	p.sendSeq++
	c.Stats.Rendezvous++
	r.state, r.scheme = stateRTSSent, scheme
	return true
}

// handleCTS handles the reply to an RTS: the number of bytes wanted, and optionally
// memory to write them to.
func (c *Core) handleCTS(from int, h *envelope.Header, payload []byte) error {
	r, err := c.lookupRequest(from, h)
	place := h.Flags == envelope.ByWrite
	switch {
	case err != nil:
		return err
	case r.state != stateRTSSent:
		return stateError(from, h)
	case h.Length > uint64(len(r.Buf)):
		return fmt.Errorf("%w: rank %d: CTS for %d bytes, message has %d", ErrProtocol, from, h.Length, len(r.Buf))
	case place && (r.scheme != RendezvousWrite || h.Length == 0):
		return fmt.Errorf("%w: rank %d: CTS with memory for %d bytes, rendezvous is %v", ErrProtocol, from, h.Length, r.scheme)
	}
	var key envelope.Key
	if err := key.Unmarshal(payload); err != nil {
		return fmt.Errorf("%w: rank %d: %w", ErrProtocol, from, err)
	}
	r.key, r.remoteID, r.Bytes = key, key.ID, int(h.Length)
	o := sendOp{op: opStream, r: r}
	if place {
		o.op = opWrite
	}
	c.enqueue(from, o)
	return nil
}

// writeMessage writes a message to the receiver's memory by RDMA, followed by a FIN.
func (c *Core) writeMessage(to int, r *Request) bool {
	if r.state == stateQueued {
		switch err := c.net.RDMAWrite(to, r.Buf[:r.Bytes], r.key, r.id); {
		case err == ErrNoRoom:
			return false
		case err == nil:
			r.state = stateWriting
			c.enqueue(to, sendOp{op: opReply, kind: envelope.FIN, id: r.remoteID})
			return true
		}
		c.Stats.Repacked++
		r.state = stateStreaming
	}
	return c.sendData(to, r)
}

// sendData sends as many DATA packets of a message as the net accepts.
func (c *Core) sendData(to int, r *Request) bool {
	r.state = stateStreaming
	limit := uint64(max(1, c.net.Limits(to).Eager))
	for r.offset < uint64(r.Bytes) {
		n := min(uint64(r.Bytes)-r.offset, limit)
		h := c.newHeader(envelope.Data, r.remoteID)
		h.Length, h.Bytes = r.offset, uint32(n)
		if !c.sendPacket(to, h, r.Buf[r.offset:r.offset+n]) {
			return false
		}
		r.offset += n
	}
	c.complete(r, c.peerState(to).err)
	return true
}

// maxSelfCopy is the maximum length in bytes of a message to the own rank that is
// buffered, so that its send completes at once.
const maxSelfCopy = 16 << 10

// sendSelf sends a message to the own rank.
func (c *Core) sendSelf(r *Request) {
	c.Stats.Self++
	e := match.Envelope{Context: r.Envelope.Context, Source: int32(c.rank), Tag: r.Envelope.Tag}
	if n := c.posted.FindReceive(e); n != nil {
		c.matchPosted(n.Item, e, uint64(len(r.Buf)))
		n.Item.SentSignature = r.Signature
		c.copyAndComplete(n.Item, r.Buf)
		c.complete(r, nil)
		return
	}
	h := c.newHeader(envelope.Eager, 0)
	h.Context, h.Tag, h.Length = e.Context, e.Tag, uint64(len(r.Buf))
	h.SetSignature(r.Signature)
	m := c.newMessage(h, nil)
	if r.Sync || len(r.Buf) > maxSelfCopy {
		m.selfSend, r.state = r, stateUnmatched
	} else {
		m.data = append(m.data, r.Buf...)
		c.complete(r, nil)
	}
	_ = c.queueUnexpected(c.rank, m) // messages to the own rank are not limited
}
