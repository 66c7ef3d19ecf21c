package onesided

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// packetLimit returns the maximum payload in bytes of a packet to a rank, without the id of a
// region.
func (w *Window) packetLimit(p *peer) int {
	if p.rank == w.comm.Rank {
		return math.MaxInt32
	}
	n := w.eng.Fabric().Limits(p.job).Eager
	if w.dynamic != nil {
		n -= regionIDSize
	}
	return n
}

// serveAccess executes an access of a rank to the memory here and sends the reply. The caller
// holds the engine's lock, which makes the access atomic with others.
func (w *Window) serveAccess(core *protocol.Core, p *peer, k packetType, h *envelope.Header, payload []byte) error {
	t := &w.in
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
		if cap(w.reply) < n {
			w.reply = make([]byte, n)
		}
		old = w.reply[:n]
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

// serveMessage starts the receive or the send of a message to or from the memory here.
func (w *Window) serveMessage(core *protocol.Core, p *peer, k packetType, h *envelope.Header, payload []byte) error {
	t := &w.in
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

// messageEnvelope returns the envelope of messages that put elements to a rank, or fetch them.
func (w *Window) messageEnvelope(k packetType, from *peer, tag int32) match.Envelope {
	e := match.Envelope{Context: w.comm.ContextID, Source: int32(from.job), Tag: tag}
	if k == packetFetch {
		e.Context++
	}
	return e
}

// serveLockWord executes a fetch-and-add on a word of the lock here.
func (w *Window) serveLockWord(core *protocol.Core, p *peer, h *envelope.Header) error {
	word := int(uint8(h.Tag >> 8))
	if word >= len(w.control) {
		return fmt.Errorf("%w: invalid lock word %d", protocol.ErrProtocol, word)
	}
	was := atomic.AddUint64(&w.control[word], h.Length) - h.Length
	if h.ID != 0 {
		reply := envelope.Header{Context: w.comm.ContextID, Tag: int32(packetFetchAddReply), ID: h.ID}
		_ = core.SendActive(p.job, reply, binary.LittleEndian.AppendUint64(w.reply[:0], was))
	}
	return nil
}
