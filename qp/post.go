package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/internal/qpstate"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// MaxMessage is the maximum message length in bytes (IBTA volume 1, 9.4.1).
const MaxMessage = 1 << 31

// PostSend queues requests and returns the number accepted, as
// verbs.QP.PostSend does. The next Drain builds their packets.
func (c *Core) PostSend(now reliability.Time, wrs []verbs.SendWR) (int, error) {
	if !qpstate.MaySend(c.state) {
		return 0, c.sendStateError()
	}
	for i := range wrs {
		if err := c.transport.postRequest(&wrs[i]); err != nil {
			c.flushInError(now)
			return i, err
		}
	}
	c.flushInError(now)
	return len(wrs), nil
}

// PostSendAll queues all requests, or none if one of them is refused, and returns its error. They must
// not be RDMA operations on datagrams.
func (c *Core) PostSendAll(now reliability.Time, wrs []verbs.SendWR) error {
	if !qpstate.MaySend(c.state) {
		return c.sendStateError()
	}
	tail := c.sq.tail
	for i := range wrs {
		if err := c.transport.postRequest(&wrs[i]); err != nil {
			c.sq.tail = tail // no packet of them is built before Drain
			return err
		}
	}
	c.flushInError(now)
	return nil
}

// sendStateError returns the error of a post in a state that accepts none.
func (c *Core) sendStateError() error {
	return &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrState,
		Detail: "state " + c.state.String() + "; modify it to RTS first"}
}

// flushInError completes posted requests with a flush error in the states ERR and SQE.
func (c *Core) flushInError(now reliability.Time) {
	if c.state == sErr || c.state == sSQE {
		c.flushSends(now)
	}
}

// checkRequest returns the length in bytes of a request that the send queue can take.
func (c *Core) checkRequest(wr *verbs.SendWR) (uint32, error) {
	if c.sq.full() {
		return 0, &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrQueueFull}
	}
	if !qpstate.SupportsOpcode(c.typ, wr.Opcode) {
		return 0, &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrUnsupported, Detail: wr.Opcode.String()}
	}
	if c.attr.MaxRdAtomic == 0 && c.state != sErr && expectsResponse(wr.Opcode) {
		return 0, c.invalidError("post send", "%v requires max_rd_atomic of at least 1", wr.Opcode)
	}
	return c.messageLength(wr)
}

// queueRequest queues a request of n bytes in the send queue. path is that of a datagram, else
// nil.
func (c *Core) queueRequest(wr *verbs.SendWR, n uint32, path *wire.Path) error {
	noData := isLocal(wr.Opcode) || wr.Opcode == verbs.WRFlush
	inline := wr.Flags&verbs.SendInline != 0 && !noData
	i := c.sq.push(inline)
	w := c.sq.wqeAt(i)
	*w = sendWQE{
		id: wr.WRID, op: wr.Opcode, flags: wr.Flags, length: n, immInv: wr.Imm,
		rkey: wr.RKey, remote: wr.RemoteAddr, operand: wr.CompareAdd, swap: wr.Swap,
		path: path, qpn: wr.RemoteQPN, qkey: wr.RemoteQKey,
	}
	if wr.Opcode == verbs.WRSendWithInv || wr.Opcode == verbs.WRLocalInv {
		w.immInv = wr.InvKey
	}
	if wr.Opcode == verbs.WRBindMW {
		b := wr.Bind
		w.bind = &b
	}
	if wr.Opcode == verbs.WRFlush {
		w.flush = wr.Flush
	}
	if noData {
		return nil
	}
	if inline {
		w.inline = uint16(n)
		if !place.Load(c.sq.inlineData(i), wr.InlineData) {
			c.sq.tail--
			return c.inlineFaultError()
		}
	} else {
		w.nsge = uint8(len(wr.SGList))
		copy(c.sq.sglAt(i), wr.SGList)
	}
	return nil
}

// inlineFaultError returns the error of a post with unreadable inline data.
func (c *Core) inlineFaultError() error {
	return &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrFault, Detail: "InlineData cannot be read"}
}

// messageLength validates the data of a request and returns its length in
// bytes.
func (c *Core) messageLength(wr *verbs.SendWR) (uint32, error) {
	switch {
	case isLocal(wr.Opcode):
		return 0, nil // no data
	case wr.Opcode == verbs.WRFlush:
		return 0, c.checkFlush(wr.Flush)
	}
	if wr.Flags&verbs.SendInline != 0 {
		n := len(wr.InlineData)
		switch {
		case wr.Opcode == verbs.WRRDMARead || isAtomic(wr.Opcode):
			return 0, c.invalidError("post send", "%v receives data, which cannot be inline", wr.Opcode)
		case n > c.sq.maxInline:
			return 0, &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrLimit,
				Detail: fmt.Sprintf("%d bytes of inline data, MaxInlineData is %d", n, c.sq.maxInline)}
		case len(wr.SGList) != 0:
			return 0, c.invalidError("post send", "inline data must be in InlineData, not in SGList")
		case uint64(n) > uint64(c.maxMessage):
			return 0, c.tooLongError(uint64(n), uint64(c.maxMessage))
		}
		return uint32(n), c.checkWordLength(wr.Opcode, uint64(n))
	}
	if len(wr.SGList) > c.sq.maxSGE {
		return 0, &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrLimit,
			Detail: fmt.Sprintf("%d scatter/gather elements, MaxSendSGE is %d", len(wr.SGList), c.sq.maxSGE)}
	}
	n := listLength(wr.SGList)
	if n > uint64(c.maxMessage) {
		return 0, c.tooLongError(n, uint64(c.maxMessage))
	}
	return uint32(n), c.checkWordLength(wr.Opcode, n)
}

// checkWordLength returns an error if an atomic or ATOMIC WRITE has not the data of a word.
func (c *Core) checkWordLength(op verbs.WROpcode, n uint64) error {
	switch {
	case n == 8:
	case isAtomic(op):
		return c.invalidError("post send", "an atomic returns 8 bytes, the list has %d", n)
	case op == verbs.WRAtomicWrite:
		return c.invalidError("post send", "%v writes 8 bytes, not %d", op, n)
	}
	return nil
}

func (c *Core) tooLongError(n, most uint64) error {
	return &verbs.OpError{Op: "post send", Object: c.String(), Err: verbs.ErrLimit,
		Detail: fmt.Sprintf("message of %d bytes, limit %d", n, most)}
}

// MaxMTU is the maximum payload of a packet in bytes.
const MaxMTU = 4096

// PostRecv queues receives and returns the number accepted.
func (c *Core) PostRecv(wrs []verbs.RecvWR) (int, error) {
	if !qpstate.MayReceive(c.state) {
		return 0, &verbs.OpError{Op: "post receive", Object: c.String(), Err: verbs.ErrState,
			Detail: "state RESET; modify it to INIT first"}
	}
	if c.shared != nil {
		return 0, c.invalidError("post receive", "the queue pair has a shared receive queue; post there")
	}
	for i := range wrs {
		wr := &wrs[i]
		if len(wr.SGList) > c.rq.maxSGE {
			return i, &verbs.OpError{Op: "post receive", Object: c.String(), Err: verbs.ErrLimit,
				Detail: fmt.Sprintf("%d scatter/gather elements, MaxRecvSGE is %d", len(wr.SGList), c.rq.maxSGE)}
		}
		if c.rq.full() {
			return i, &verbs.OpError{Op: "post receive", Object: c.String(), Err: verbs.ErrQueueFull}
		}
		c.rq.push(wr)
	}
	if c.state == sErr {
		c.flushRecvs()
	}
	if c.zeroCredits && c.rq.len() > 0 && acceptsPackets(c.state) {
		// Send a credit update: the peer may be stalled without credits.
		c.zeroCredits = false
		c.acks.ScheduleAck(c.recv.Expected().Add(-1), true)
	}
	return len(wrs), nil
}
