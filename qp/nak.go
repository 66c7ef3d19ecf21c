package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// failRemote fails the request of psn, which the peer rejected. Earlier
// requests are acknowledged, except for reads and atomics with lost responses.
func (c *Core) failRemote(now reliability.Time, status verbs.WCStatus, psn wire.PSN, s wire.Syndrome) {
	if c.sq.head == c.sq.tail || !c.sq.wqeAt(c.sq.head).started {
		return
	}
	if c.sq.wqeAt(c.sq.head).last.Less(psn) {
		c.failLostResponse(now, psn, s)
	}
	w := c.sq.wqeAt(c.sq.head)
	failure := &verbs.Failure{
		Event: fmt.Sprintf("peer responded %v (0x%02x)", s, uint8(s)), PSN: uint32(psn),
		Key: w.rkey, Addr: w.remote, Length: w.length,
	}
	if w.op == verbs.WRSendWithInv {
		failure.Key = w.immInv
	}
	switch status {
	case verbs.WCRemInvReqErr:
		failure.Cause = invalidCause(w)
	case verbs.WCRemAccessErr:
		failure.Cause = accessCause(w)
	case verbs.WCRemOpErr:
		failure.Cause = operationalCause(w)
	case verbs.WCRNRRetryExcErr:
		failure.Retries = c.retry.RNRRetriesUsed()
		failure.Key, failure.Addr = 0, 0
		failure.Cause = "the peer posts receives too late, or too few of them; post more, or increase rnr_retry (7 is no limit) or the peer's min_rnr_timer"
	}
	c.failSend(now, w, status, failure)
}

// failLostResponse fails the oldest request, a read or atomic whose response
// was lost, because the peer has rejected a later request at psn and does not
// respond any more. Retransmitting it, as Linux's rxe and hfi1 do, ends with
// the same status after all retries, or never without a timeout. Requests
// between the two are flushed.
func (c *Core) failLostResponse(now reliability.Time, psn wire.PSN, s wire.Syndrome) {
	w := c.sq.wqeAt(c.sq.head)
	c.failHead(w, verbs.WCRetryExcErr, &verbs.Failure{
		Event: fmt.Sprintf("its response was lost, and the peer cannot retransmit it: it responded %v (0x%02x) to a later request, at PSN %d", s, uint8(s), psn),
		PSN:   uint32(c.una),
		Cause: "the peer has executed this request; the connection failed because of the later request, which has a status of its own",
	})
	for w = c.sq.wqeAt(c.sq.head); w.isLocal() || w.last.Less(psn); w = c.sq.wqeAt(c.sq.head) {
		c.flushHead(now, w)
	}
}

// requiredAccess returns the name of the access flag that w needs at the peer,
// or "".
func requiredAccess(w *sendWQE) string {
	switch {
	case w.isAtomic():
		return "AccessRemoteAtomic"
	case w.op == verbs.WRRDMARead:
		return "AccessRemoteRead"
	case w.op == verbs.WRRDMAWrite, w.op == verbs.WRRDMAWriteWithImm, w.op == verbs.WRAtomicWrite:
		return "AccessRemoteWrite"
	case w.op == verbs.WRFlush && w.flush.Placement == verbs.FlushGlobal:
		return "AccessFlushGlobal"
	case w.op == verbs.WRFlush:
		return "AccessFlushPersistent"
	}
	return ""
}

// invalidCause returns the likely cause of an invalid request NAK for w.
func invalidCause(w *sendWQE) string {
	if (w.isAtomic() || w.op == verbs.WRAtomicWrite) && w.remote%8 != 0 {
		return "the address of an atomic must be a multiple of 8"
	}
	if hasEmptyResponse(w.op) {
		return "the peer's adapter does not have the operation (DeviceAttr.AtomicWrite, FlushGlobal), its queue pair does not permit it (it requires " +
			requiredAccess(w) + "), or serves fewer at a time (max_dest_rd_atomic)"
	}
	forbidden := "the peer's queue pair does not permit the operation (it requires " + requiredAccess(w) + ")"
	switch {
	case w.expectsResponse():
		cause := forbidden + ", or serves fewer at a time (max_dest_rd_atomic)"
		if w.isAtomic() {
			cause += ", or the memory there is not 8-byte aligned"
		}
		return cause
	case requiredAccess(w) != "":
		return forbidden + ", or the path MTUs differ"
	}
	return "the message is longer than the peer's receive, or the path MTUs differ"
}

// accessCause returns the likely cause of a remote access NAK for w.
func accessCause(w *sendWQE) string {
	if w.op == verbs.WRSendWithInv {
		return "the key to invalidate is not that of a memory window bound to the peer's queue pair"
	}
	return "wrong or stale rkey, range outside the region, region of another PD or without " + requiredAccess(w)
}

// operationalCause returns the likely cause of a remote operational NAK for w.
func operationalCause(w *sendWQE) string {
	switch {
	case w.op == verbs.WRRDMARead:
		return "the peer failed to execute it: its memory was unmapped, or the path from the peer does not support the MTU"
	case w.consumesRecv():
		return "the peer failed to execute it: its receive list is invalid or too short, or memory in it was unmapped"
	}
	return "the peer failed to execute it: its memory was unmapped or protected"
}
