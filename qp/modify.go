package qp

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/qpstate"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// Port is the UDP port of RoCE v2.
const Port = 4791

// FlowLabelMask is the mask of the 20 bits of a flow label.
const FlowLabelMask = 1<<20 - 1

// PathTo converts an address vector to a path.
func PathTo(av *verbs.AHAttr) wire.Path {
	port := av.UDPPort
	if port == 0 {
		port = Port
	}
	return wire.Path{Dst: netip.AddrPortFrom(av.DGID.Addr(), port), TrafficClass: av.TrafficClass, HopLimit: av.HopLimit,
		FlowLabel: av.FlowLabel & FlowLabelMask}
}

// Modify changes the attributes in mask, as verbs.QP.Modify does.
func (c *Core) Modify(now reliability.Time, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	to := c.state
	if mask&verbs.AttrState != 0 {
		to = a.State
	}
	if mask&verbs.AttrCurState != 0 && a.CurState != c.state {
		return c.invalidError("modify QP", "cur_state is %v, the queue pair is in %v", a.CurState, c.state)
	}
	if err := qpstate.CheckTransition(c.typ, c.state, to, mask); err != nil {
		return err
	}
	if c.state == sSQD && to != sErr && to != sReset && !c.sqIdle() {
		return &verbs.OpError{Op: "modify QP", Object: c.String(), Err: verbs.ErrState,
			Detail: "the send queue is draining; wait for EventSQDrained"}
	}
	if err := c.checkAttrs(a, mask); err != nil {
		return err
	}
	if to == sSQD && c.state != sSQD && mask&verbs.AttrEnSQDAsyncNotify == 0 {
		c.attr.EnSQDAsyncNotify = true
	}
	c.setAttrs(a, mask)
	c.setState(now, to)
	return nil
}

func (c *Core) invalidError(op, format string, args ...any) error {
	return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrInvalid, Detail: fmt.Sprintf(format, args...)}
}

// checkAttrs validates all attributes before any of them is set.
func (c *Core) checkAttrs(a *verbs.QPAttr, m verbs.QPAttrMask) error {
	bad := func(format string, args ...any) error { return c.invalidError("modify QP", format, args...) }
	switch {
	case m&verbs.AttrPort != 0 && a.PortNum != 1:
		return bad("port %d does not exist; the adapter has port 1", a.PortNum)
	case m&verbs.AttrPKeyIndex != 0 && a.PKeyIndex != 0:
		return bad("P_Key index %d does not exist; the table has one entry, 0xFFFF", a.PKeyIndex)
	case m&verbs.AttrPathMTU != 0 && a.PathMTU.Bytes() == 0:
		return bad("path MTU %d: want MTU256 (1) to MTU4096 (5)", a.PathMTU)
	case m&verbs.AttrDestQPN != 0 && (a.DestQPN == 0 || a.DestQPN > wire.QPNMask-1):
		return bad("destination QPN 0x%x: want 1 to 0xfffffe", a.DestQPN)
	case m&verbs.AttrRQPSN != 0 && a.RQPSN > wire.PSNMask, m&verbs.AttrSQPSN != 0 && a.SQPSN > wire.PSNMask:
		return bad("a PSN has 24 bits")
	case m&verbs.AttrTimeout != 0 && a.Timeout > 31:
		return bad("timeout %d: want 0 to 31", a.Timeout)
	case m&verbs.AttrRetryCnt != 0 && a.RetryCnt > 7, m&verbs.AttrRNRRetry != 0 && a.RNRRetry > 7:
		return bad("retry_cnt and rnr_retry: want 0 to 7")
	case m&verbs.AttrMinRNRTimer != 0 && a.MinRNRTimer > 31:
		return bad("RNR timer code %d: want 0 to 31", a.MinRNRTimer)
	case m&verbs.AttrMaxQPRdAtomic != 0 && a.MaxRdAtomic > MaxRdAtomic,
		m&verbs.AttrMaxDestRdAtomic != 0 && a.MaxDestRdAtomic > MaxRdAtomic:
		return bad("at most %d reads and atomics can be outstanding", MaxRdAtomic)
	case m&verbs.AttrMaxQPRdAtomic != 0 && a.MaxRdAtomic == 0 && c.readsQueued() > 0:
		return bad("%d reads and atomics are queued; max_rd_atomic 0 would block them, keep at least 1 until they are complete", c.readsQueued())
	case m&verbs.AttrAV != 0:
		d := a.AV.DGID.Addr()
		if a.AV.DGID.IsZero() || d.IsUnspecified() {
			return bad("the address vector has no destination GID")
		}
		if d.IsMulticast() {
			return bad("a connected queue pair cannot have the multicast group %v as its peer", d)
		}
	}
	return nil
}

// readsQueued returns the number of reads and atomics in the send queue.
func (c *Core) readsQueued() (n int) {
	for i := c.sq.head; i != c.sq.tail; i++ {
		if c.sq.wqeAt(i).expectsResponse() {
			n++
		}
	}
	return n
}

// MaxRdAtomic is the maximum number of outstanding reads and atomics, as
// requester and as responder.
const MaxRdAtomic = 128

// qpAccess are the permissions of a queue pair; others are for memory only.
const qpAccess = verbs.AccessRemote | verbs.AccessFlushGlobal | verbs.AccessFlushPersistent

func (c *Core) setAttrs(a *verbs.QPAttr, m verbs.QPAttrMask) {
	set := func(bit verbs.QPAttrMask, f func()) {
		if m&bit != 0 {
			f()
		}
	}
	o := &c.attr
	set(verbs.AttrPKeyIndex, func() { o.PKeyIndex = a.PKeyIndex })
	set(verbs.AttrPort, func() { o.PortNum = a.PortNum })
	set(verbs.AttrAccessFlags, func() { o.AccessFlags = a.AccessFlags & qpAccess })
	set(verbs.AttrQKey, func() { o.QKey = a.QKey })
	set(verbs.AttrAV, func() { o.AV = a.AV; c.path = PathTo(&a.AV); c.enableSelective(&a.AV) })
	set(verbs.AttrPathMTU, func() { o.PathMTU = a.PathMTU; c.mtu = uint32(a.PathMTU.Bytes()) })
	set(verbs.AttrDestQPN, func() { o.DestQPN = a.DestQPN })
	set(verbs.AttrRQPSN, func() { c.recv.Reset(wire.PSN(a.RQPSN)) })
	set(verbs.AttrSQPSN, func() { c.next = wire.PSN(a.SQPSN); c.una, c.top = c.next, c.next })
	set(verbs.AttrMaxQPRdAtomic, func() { o.MaxRdAtomic = a.MaxRdAtomic })
	set(verbs.AttrMaxDestRdAtomic, func() { o.MaxDestRdAtomic = a.MaxDestRdAtomic; c.res.Resize(c.readDepth(a.MaxDestRdAtomic)) })
	set(verbs.AttrMinRNRTimer, func() { o.MinRNRTimer = a.MinRNRTimer })
	set(verbs.AttrTimeout, func() { o.Timeout = a.Timeout })
	set(verbs.AttrRetryCnt, func() { o.RetryCnt = a.RetryCnt })
	set(verbs.AttrRNRRetry, func() { o.RNRRetry = a.RNRRetry })
	set(verbs.AttrEnSQDAsyncNotify, func() { o.EnSQDAsyncNotify = a.EnSQDAsyncNotify })
}

// setState enters a state and performs the actions of the transition.
func (c *Core) setState(now reliability.Time, to verbs.QPState) {
	from := c.state
	if to == sReset {
		c.resetAll()
		return
	}
	c.state = to
	if to != from {
		c.recorder.addState(now, to)
	}
	switch {
	case to == sErr && from != sErr:
		c.flushAll(now)
	case to == sRTS:
		c.transport.configure()
		c.drained = false
	case to == sSQD:
		c.checkDrained()
	}
}

// MinAckTimeout is the minimum acknowledgement timeout in nanoseconds, for any
// timeout code: that of code 12, 16.8 ms. Shorter timeouts, which hardware
// rounds up as well, would expire while the responder's process waits for a
// processor. A failed peer is detected after at most 0.45 s for codes up to 12:
// seven retries with backoff.
const MinAckTimeout = 4096 << 12

// ackTimeout returns the acknowledgement timeout in nanoseconds for a timeout
// code, 0 (never) for code 0.
func ackTimeout(code uint8) int64 {
	if code == 0 {
		return 0
	}
	return max(int64(verbs.AckTimeout(code)), MinAckTimeout)
}

// sqIdle reports whether no started request is incomplete.
func (c *Core) sqIdle() bool {
	return c.sq.head == c.sq.tail || !c.sq.wqeAt(c.sq.head).started
}

// checkDrained raises SQ_DRAINED once, after the last started request.
func (c *Core) checkDrained() {
	if c.state == sSQD && !c.drained && c.sqIdle() {
		c.drained = true
		if c.attr.EnSQDAsyncNotify {
			c.host.Event(verbs.EventSQDrained, nil)
		}
	}
}
