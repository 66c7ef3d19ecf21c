package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A transfer is an RDMARead, RDMAWrite or RDMAAtomic of this rank in flight.
type transfer struct {
	id   uint64
	b    []byte
	key  envelope.Key
	next int // offset of the next byte to send or to request
	left int // bytes not received yet
}

// readWindow is the maximum number of bytes requested and not received.
const readWindow = 16 * maxFramePayload

// RDMARead implements protocol.Net.
func (f *Fabric) RDMARead(rank int, b []byte, key envelope.Key, transferID uint64) error {
	l, err := f.writableLink(rank)
	if err == nil {
		m := &transfer{id: transferID, b: b, key: key, left: len(b)}
		l.transfers[transferID] = m
		l.pendingReads = append(l.pendingReads, m)
		l.requestReads()
	}
	return err
}

// RDMAWrite implements protocol.Net.
func (f *Fabric) RDMAWrite(rank int, b []byte, key envelope.Key, transferID uint64) error {
	l, err := f.writableLink(rank)
	if err == nil {
		l.currentWrite = &transfer{id: transferID, b: b, key: key}
		l.transfers[transferID] = l.currentWrite
		l.writePending()
	}
	return err
}

// RDMAAtomic implements protocol.Atomics.
func (f *Fabric) RDMAAtomic(rank int, b []byte, key envelope.Key, a protocol.Atomic, transferID uint64) error {
	l, err := f.writableLink(rank)
	if err == nil {
		l.transfers[transferID] = &transfer{id: transferID, b: b}
		h := frame{Kind: addFrame, Transfer: transferID, Addr: key.Addr, Key: key.RKey, Offset: a.Operand}
		if a.Swap {
			h.Kind, h.New = swapFrame, a.New
		}
		l.sendFrame(&h, nil)
	}
	return err
}

// writableLink returns the connection to a rank, if its send queue has room.
func (f *Fabric) writableLink(rank int) (*link, error) {
	l := f.links[rank]
	if l == nil || l.socket == nil || l.failed {
		f.startConnect(rank)
		return nil, protocol.ErrNoRoom
	}
	if len(l.queue.pendingBytes()) > f.o.Queue || l.currentWrite != nil {
		l.coreWaiting = true
		return nil, protocol.ErrNoRoom
	}
	return l, nil
}

// requestReads requests more bytes of the pending reads, within readWindow.
func (l *link) requestReads() {
	for len(l.pendingReads) > 0 && l.requestedBytes < readWindow {
		m := l.pendingReads[0]
		n := min(maxFramePayload, len(m.b)-m.next)
		l.sendFrame(&frame{Kind: readFrame, Transfer: m.id, Addr: m.key.Addr + uint64(m.next), Key: m.key.RKey, Offset: uint64(m.next), Bytes: uint32(n)}, nil)
		l.requestedBytes += n
		if m.next += n; m.next == len(m.b) {
			l.pendingReads[0] = nil
			l.pendingReads = l.pendingReads[1:]
		}
	}
}

// writeBurst is the maximum number of bytes that writePending writes per call.
const writeBurst = 1 << 20

// writePending sends more of the current RDMAWrite, which continueWriting continues.
func (l *link) writePending() {
	for turn := 0; l.currentWrite != nil && turn < writeBurst && !l.blocked; {
		m := l.currentWrite
		n := min(maxFramePayload, len(m.b)-m.next)
		h := frame{Kind: writeFrame, Transfer: m.id, Addr: m.key.Addr + uint64(m.next), Key: m.key.RKey, Bytes: uint32(n)}
		piece := m.b[m.next:][:n]
		if m.next += n; m.next == len(m.b) {
			h.Kind, l.currentWrite = writeLastFrame, nil
		}
		turn += n
		l.sendFrame(&h, piece)
	}
	if l.currentWrite != nil && !l.failed {
		l.blocked = true
		l.socket.awaitWritable(true)
	}
}

// handleReply handles a reply to a transfer of this rank.
func (l *link) handleReply(c *protocol.Core, h *frame, payload []byte) error {
	m := l.transfers[h.Transfer]
	if m == nil || m == l.currentWrite {
		return fmt.Errorf("%w: reply to unknown transfer %#x", envelope.ErrMalformed, h.Transfer)
	}
	switch {
	case h.Kind == readReplyFrame:
		if m.left == 0 || h.Offset > uint64(m.next) || len(payload) > m.next-int(h.Offset) || len(payload) > m.left || len(payload) == 0 {
			return fmt.Errorf("%w: %d bytes at offset %d were not requested", envelope.ErrMalformed, len(payload), h.Offset)
		}
		copy(m.b[h.Offset:], payload)
		m.left -= len(payload)
		l.requestedBytes -= len(payload)
		l.requestReads()
		if m.left > 0 {
			return nil
		}
	case m.left > 0:
		return fmt.Errorf("%w: transfer %#x ends with %d bytes missing", envelope.ErrMalformed, h.Transfer, m.left)
	case m.key == envelope.Key{}: // an Atomic
		binary.NativeEndian.PutUint64(m.b, h.Offset)
	}
	delete(l.transfers, h.Transfer)
	c.TransferDone(h.Transfer, nil)
	return nil
}
