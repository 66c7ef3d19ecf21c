//go:build linux

package uverbs

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// A completionQueue is a verbs.CQ. The kernel produces completions, Poll consumes them.
type completionQueue struct {
	handleGuard
	dev        *device
	channel    *compChannel // the events go to
	userHandle uint64
	recordTime atomic.Bool
	overrun    atomic.Bool // the kernel has lost completions
	asyncs     eventCount
	waiters    queueWaiters

	ringMu  sync.Mutex
	ring    *ring // nil if the queue is closed
	depth   int
	command [16]byte // REQ_NOTIFY_CQ
}

// CreateCQ implements verbs.Device.
func (d *device) CreateCQ(depth int) (verbs.CQ, error) {
	c, err := d.ownChannel()
	if err != nil {
		return nil, err
	}
	return d.createCQ(c, depth)
}

func (d *device) createCQ(channel *compChannel, depth int) (_ verbs.CQ, err error) {
	const op = "create CQ"
	if d.isClosed.Load() {
		return nil, closedError(op, d.String())
	}
	if limit := int(d.attr.maxCQE); depth < 1 || depth > limit {
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrLimit, Detail: fmt.Sprintf("depth is %d: want 1 to %d", depth, limit)}
	}
	c := &completionQueue{dev: d, channel: channel}
	if c.userHandle, err = d.addObject(c); err != nil {
		return nil, opError(op, d.String(), err)
	}
	var r createCQResponse
	if err := execute(d.file, cmdCreateCQ, &createCQ{userHandle: c.userHandle, depth: uint32(depth), channel: channel.fd}, &r); err != nil {
		d.removeObject(c.userHandle)
		return nil, opError(op, d.String(), err)
	}
	c.handle, c.depth = r.handle, int(r.depth)
	if c.ring, err = d.file.mapQueue(r.queue); err != nil {
		_ = execute(d.file, cmdDestroyCQ, &destroyBody{handle: r.handle}, &destroyCQResponse{})
		d.removeObject(c.userHandle)
		return nil, opError(op, d.String(), err)
	}
	channel.addUser(1)
	return c, nil
}

// String returns the name of the queue for errors.
func (c *completionQueue) String() string { return "CQ" }

// Poll implements verbs.CQ.
func (c *completionQueue) Poll(wc []verbs.WC) (int, error) {
	c.ringMu.Lock()
	defer c.ringMu.Unlock()
	if c.ring == nil {
		return 0, closedError("poll", c.String())
	}
	r := c.ring
	at := r.consumer.Load()
	n := min(len(wc), int((r.producer.Load()-at)&r.mask))
	if n == 0 {
		if len(wc) > 0 && c.overrun.Load() {
			return 0, c.overrunError("poll", c.depth)
		}
		return 0, nil
	}
	var now int64
	if c.recordTime.Load() {
		now = c.dev.QueryClock()
	}
	for i := range n {
		e := (*completionElement)(r.elementAt(at + uint32(i)))
		decodeCompletion(&wc[i], e)
		wc[i].Time = now
		if e.status != 0 {
			c.dev.noteFailure(e.qpn)
		}
	}
	r.consumer.Store((at + uint32(n)) & r.mask)
	return n, nil
}

// wcInvalidated is IB_WC_WITH_INVALIDATE, which rxe stores instead of the value of libibverbs.
const wcInvalidated = 1 << 2

// decodeCompletion converts a completion. The opcodes and statuses are those of package verbs.
func decodeCompletion(wc *verbs.WC, e *completionElement) {
	*wc = verbs.WC{WRID: e.id, Status: verbs.WCStatus(e.status), QPN: e.qpn, VendorErr: e.vendorErr}
	if e.status != 0 {
		return
	}
	wc.Opcode, wc.ByteLen = verbs.WCOpcode(e.opcode), e.bytes
	wc.Flags = verbs.WCFlags(e.flags) & (verbs.WCGRH | verbs.WCWithImm)
	if e.flags&wcInvalidated != 0 {
		wc.Flags |= verbs.WCWithInv
	}
	if !wc.Opcode.IsRecv() {
		wc.Flags = 0
		return
	}
	wc.SrcQPN = e.source
	if e.source == 0 {
		wc.Flags &^= verbs.WCGRH // rxe has the flag on every service, but only datagrams, which have a source, begin with a GRH area
	}
	switch {
	case wc.Flags&verbs.WCWithImm != 0:
		wc.Imm = binary.BigEndian.Uint32(e.immOrKey[:])
	case wc.Flags&verbs.WCWithInv != 0:
		wc.InvKey = binary.NativeEndian.Uint32(e.immOrKey[:])
	}
}

// overrunError returns the error of a queue that has lost completions.
func (c *completionQueue) overrunError(op string, depth int) error {
	return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrCQOverrun, Detail: fmt.Sprintf("depth %d", depth)}
}

// RecordTimes implements verbs.CQ. The time of a completion is that of the Poll that returns it.
func (c *completionQueue) RecordTimes(on bool) { c.recordTime.Store(on) }

// Depth implements verbs.CQ.
func (c *completionQueue) Depth() int {
	c.ringMu.Lock()
	defer c.ringMu.Unlock()
	return c.depth
}

// Len implements verbs.CQ.
func (c *completionQueue) Len() int {
	c.ringMu.Lock()
	defer c.ringMu.Unlock()
	if c.ring == nil {
		return 0
	}
	return c.ring.countUsed()
}

// Resize implements verbs.CQ. The kernel copies the completions to another queue.
func (c *completionQueue) Resize(depth int) error {
	const op = "resize CQ"
	if err := c.checkOpen(c.dev, op, c); err != nil {
		return err
	}
	if c.overrun.Load() {
		return c.overrunError(op, c.Depth())
	}
	if limit := int(c.dev.attr.maxCQE); depth < 1 || depth > limit {
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrLimit, Detail: fmt.Sprintf("depth is %d: want 1 to %d", depth, limit)}
	}
	c.ringMu.Lock()
	defer c.ringMu.Unlock()
	if c.ring == nil {
		return closedError(op, c.String())
	}
	if n := c.ring.countUsed(); n > depth {
		return invalidError(op, c.String(), "%d completions are queued: want a depth of at least that", n)
	}
	var r resizeCQResponse
	if err := execute(c.dev.file, cmdResizeCQ, &resizeCQ{c.handle, uint32(depth)}, &r); err != nil {
		return opError(op, c.String(), err)
	}
	resized, err := c.dev.file.mapQueue(r.queue)
	if err != nil {
		return opError(op, c.String(), err)
	}
	old := c.ring
	c.ring, c.depth = resized, int(r.depth)
	return opError(op, c.String(), c.dev.file.unmapQueue(old))
}

// dropCompletions removes the completions of a queue pair, which has ended or was reset.
func (c *completionQueue) dropCompletions(qpn uint32) {
	c.ringMu.Lock()
	defer c.ringMu.Unlock()
	if c.ring == nil {
		return
	}
	// Completions that remain move towards the producer, so that the gap is at the consumer.
	r := c.ring
	first, end := r.consumer.Load(), r.producer.Load()
	keep := end
	for at := end; at != first; {
		at = (at - 1) & r.mask
		e := (*completionElement)(r.elementAt(at))
		if e.qpn != qpn {
			keep = (keep - 1) & r.mask
			*(*completionElement)(r.elementAt(keep)) = *e
		}
	}
	r.consumer.Store(keep)
}

// handleAsync implements object: the queue has overrun.
func (c *completionQueue) handleAsync(kind verbs.EventType) verbs.AsyncEvent {
	c.asyncs.addHandled()
	if kind == verbs.EventCQErr {
		c.overrun.Store(true)
		c.channel.raiseEvent(c)
	}
	return verbs.AsyncEvent{Type: kind, CQ: c}
}

// discardMemory implements object.
func (c *completionQueue) discardMemory() {
	c.waiters.wakeAll()
	c.releaseRing()
}

func (c *completionQueue) releaseRing() {
	c.ringMu.Lock()
	defer c.ringMu.Unlock()
	_ = c.dev.file.unmapQueue(c.ring)
	c.ring = nil
}

// Close implements verbs.CQ.
func (c *completionQueue) Close() error {
	err := c.closeObject(c.dev, c, func() error {
		var r destroyCQResponse
		if err := execute(c.dev.file, cmdDestroyCQ, &destroyBody{handle: c.handle}, &r); err != nil {
			return err
		}
		c.waiters.counted.waitFor(r.completions)
		c.asyncs.waitFor(r.asyncs)
		c.dev.removeObject(c.userHandle)
		c.channel.removeQueue(c)
		c.releaseRing()
		return nil
	})
	c.waiters.wakeAll() // after the queue is marked as closed
	return err
}
