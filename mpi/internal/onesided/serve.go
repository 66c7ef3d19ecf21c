package onesided

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// serveAccess executes an access of a rank to the memory here and sends the reply. The caller
// holds the engine's lock, which makes the access atomic with others.
func (w *Window) serveAccess(core *protocol.Core, p *peer, k packetType, h *envelope.Header, payload []byte) error {
	t := &w.buffers.in
	mem, payload, err := w.targetRegion(p, payload)
	if err != nil {
		return err
	}
	data, err := t.Decode(payload)
	if err != nil {
		return err
	}
	limit := len(data)
	if k == packetGet {
		limit = w.packetLimit(p)
	}
	if err := t.Validate(len(mem.Bytes), limit); err != nil {
		return err
	}
	n := t.Bytes()
	var old []byte
	if k != packetPut && k != packetAccumulate {
		if cap(w.buffers.reply) < n {
			w.buffers.reply = make([]byte, n)
		}
		old = w.buffers.reply[:n]
	}
	kind := datatype.Kind(h.Tag >> 8)
	switch k {
	case packetPut:
		if len(data) != n {
			return fmt.Errorf("%w: payload of %d bytes, want %d", protocol.ErrProtocol, len(data), n)
		}
		t.Scatter(mem.Bytes, data)
	case packetGet:
		t.Gather(old, mem.Bytes)
	case packetCompareAndSwap:
		if len(data) != 2*n {
			return fmt.Errorf("%w: payload of %d bytes, want twice %d", protocol.ErrProtocol, len(data), n)
		}
		err = mem.CompareAndSwap(t, kind, data[:n], data[n:], old)
	default:
		op, _ := datatype.OpOf(uint8(h.Tag >> 16))
		err = mem.Accumulate(t, op, kind, data, old)
	}
	switch {
	case err != nil:
		return err
	case old != nil:
		reply := envelope.Header{Context: w.comm.ContextID, Tag: int32(packetReply), ID: h.ID, Length: h.Length}
		_ = core.SendActive(p.job, reply, old) // a lost rank needs no reply
	default:
		p.recvState.received++
		p.recvState.handled++
	}
	return nil
}

// targetRegion returns the local region that a packet of a rank is for, and the rest of the
// packet.
func (w *Window) targetRegion(p *peer, payload []byte) (*localRegion, []byte, error) {
	if w.dynamic == nil {
		return &w.staticRegion, payload, nil
	}
	if len(payload) < regionIDSize {
		return nil, nil, fmt.Errorf("%w: packet of %d bytes without region id", rma.ErrMalformed, len(payload))
	}
	id := binary.LittleEndian.Uint64(payload)
	local := w.dynamic.regions[id]
	if local == nil || local.holders[p.rank] == nil {
		return nil, nil, fmt.Errorf("%w: access to region %d without lookup", protocol.ErrProtocol, id)
	}
	return local, payload[regionIDSize:], nil
}

// serveMessage starts the receive or the send of a message to or from the memory here.
func (w *Window) serveMessage(core *protocol.Core, p *peer, k packetType, h *envelope.Header, payload []byte) error {
	t := &w.buffers.in
	mem, payload, err := w.targetRegion(p, payload)
	if err != nil {
		return err
	}
	rest, err := t.Decode(payload)
	if err != nil {
		return err
	}
	if h.Length > uint64(len(mem.Bytes)) || h.ID > math.MaxInt32 || len(rest) > 0 {
		return fmt.Errorf("%w: message of %d bytes, tag %d, with %d extra bytes", protocol.ErrProtocol, h.Length, h.ID, len(rest))
	}
	if err := t.Validate(len(mem.Bytes), int(h.Length)); err != nil {
		return err
	}
	off, n, ok := t.Contiguous()
	if !ok || n != int(h.Length) {
		return fmt.Errorf("%w: message of %d bytes is not contiguous", protocol.ErrProtocol, h.Length)
	}
	if p.recvState.messages++; p.recvState.messages > maxReplies {
		return fmt.Errorf("%w: %d messages at a time", protocol.ErrProtocol, p.recvState.messages)
	}
	r := &protocol.Request{Buf: mem.Bytes[off:][:n], Dest: p.job}
	r.Envelope = w.messageEnvelope(k, p, int32(h.ID))
	mem.messages++
	if k == packetFetch {
		r.OnDone = func(*protocol.Request) {
			mem.messages--
			p.recvState.messages--
		}
		core.Send(r)
		return nil
	}
	p.recvState.received++
	r.OnDone = func(*protocol.Request) {
		mem.messages--
		p.recvState.messages--
		p.recvState.handled++
		w.sendDueAck(core, p)
	}
	core.Receive(r)
	return nil
}

// sendDueAck sends a requested Ack when all received packets are handled.
func (w *Window) sendDueAck(core *protocol.Core, p *peer) {
	if p.recvState.ackRequested && p.recvState.handled == p.recvState.received {
		p.recvState.ackRequested = false
		w.sendSignal(core, p, packetAck, p.recvState.handled)
	}
}
