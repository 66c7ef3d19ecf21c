package rnic

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/congestion"
	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// A queuePair is a qp.Core with a lock, a timer and completion queues.
type queuePair struct {
	core           *qp.Core
	num            uint32
	dev            *Device
	pd             *protectionDomain
	shard          *shard
	sendCQ, recvCQ *completionQueue
	srq            *sharedReceiveQueue
	selective      bool // verbs.QPInitAttr.SelectiveSignaling
	signalAll      bool // verbs.QPInitAttr.SignalAll
	noCredits      bool
	datagram       bool // UD or GSI: sends name an address handle
	maxRDMA        int
	congestion     string // verbs.QPInitAttr.Congestion
	rateMode       congestion.Mode

	qpState
}

// A qpState is the part of a queue pair that the lock of its shard guards.
type qpState struct {
	closed         bool // Close was called
	active         bool // in shard.active
	ackQueued      bool // in shard.ackQueue
	failureLogged  bool // its first failure was logged
	refusalLogged  bool // a refusal of the system to send its responses was logged
	overran        bool // a completion was lost because its queue overran
	confirmPending bool // in shard.unconfirmed
	sendBlocked    bool // its next request waits for the batch to be sent
	onRefusal      func(*verbs.RefusedError)
	streamAttachment
	timer deadline.Entry[reliability.Time]
}

var (
	_ verbs.QP                = (*queuePair)(nil)
	_ adapter.RefusalReporter = (*queuePair)(nil)
)

// Num implements verbs.QP.
func (q *queuePair) Num() uint32 { return q.num }

// Type implements verbs.QP.
func (q *queuePair) Type() verbs.QPType { return q.core.Type() }

// State implements verbs.QP.
func (q *queuePair) State() verbs.QPState {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.core.State()
}

// checkUsable returns the error of op if the queue pair is closed or its device
// unusable. The shard's lock is held.
func (q *queuePair) checkUsable(op string) error {
	if q.closed {
		return &verbs.OpError{Op: op, Object: q.core.String(), Err: verbs.ErrClosed}
	}
	return q.dev.checkUsable(op)
}

// moveToError flushes all work when the device closes.
func (q *queuePair) moveToError() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if !q.closed && q.core.State() != verbs.StateReset {
		_ = q.core.Modify(q.dev.now(), &verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // always allowed
	}
	q.stopConnecting()
	q.shard.detachStream(q)
}

// flushBeforeClose sends the pending acknowledgement when the device closes.
func (q *queuePair) flushBeforeClose() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if !q.closed {
		q.shard.flushBeforeClose(q, q.dev.now())
	}
}

// A streamAttachment is the TCP connection of a queue pair with iWARP.
type streamAttachment struct {
	stream           *link.Stream       // nil without a connection
	connecting       context.Context    // of the set-up by endpoints, or nil
	cancelConnecting context.CancelFunc // ends it, or nil
	awaitsStream     bool               // the peer is to dial
	managed          bool               // a connection manager sets the connection up
	onStreamEnd      func()             // called when the connection ends, or nil
}

// Modify implements verbs.QP.
func (q *queuePair) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	const op = "modify QP"
	if mask&verbs.AttrAV != 0 {
		full, _, err := resolveAV(q.dev, attr.AV, op)
		if err != nil {
			return err
		}
		attr.AV = full
	}
	if mask&verbs.AttrPathMTU != 0 && attr.PathMTU > q.dev.activeMTU() && attr.PathMTU <= verbs.MTU4096 {
		return &verbs.OpError{Op: op, Object: q.core.String(), Err: verbs.ErrLimit,
			Detail: fmt.Sprintf("path MTU %d, the port's active MTU is %d", attr.PathMTU.Bytes(), q.dev.activeMTU().Bytes())}
	}
	if mask&(verbs.AttrAV|verbs.AttrPathMTU) == verbs.AttrAV|verbs.AttrPathMTU && attr.PathMTU.Bytes() > 0 {
		if _, err := q.dev.FitPathMTU(attr.AV, attr.PathMTU); err != nil {
			return &verbs.OpError{Op: op, Object: q.core.String(), Err: err}
		}
	}
	s := q.shard
	s.mu.Lock()
	defer s.unlock()
	if err := q.checkUsable(op); err != nil {
		return err
	}
	now := q.dev.now()
	s.flushBeforeClose(q, now) // on the path in force so far
	before := q.core.State()
	if err := q.core.Modify(now, &attr, mask); err != nil {
		return err
	}
	if q.core.State() == verbs.StateReset {
		q.purgeCompletions()
	}
	switch {
	case q.core.State() == verbs.StateRTR && before != verbs.StateRTR && q.core.IsStream() && !q.managed:
		q.beginConnecting()
	case q.core.State() == verbs.StateRTR && !q.core.IsStream():
		q.connectLink()
	case q.core.State() == verbs.StateReset && q.core.IsStream():
		q.stopConnecting()
		s.detachStream(q)
		q.managed = false
	}
	s.drainQP(q, now)
	s.flush()
	return nil
}

// connectLink lets the link find the way to the peer, so that the first packet does not wait for it. The
// shard's lock is held.
func (q *queuePair) connectLink() {
	c, ok := q.shard.socket.(interface {
		Connect(dst netip.AddrPort, qpn uint32)
	})
	if dst := q.core.PeerPath().Dst; ok && dst.IsValid() {
		c.Connect(dst, q.core.Query().DestQPN)
	}
}

// purgeCompletions removes the queue pair's unpolled completions and clears its
// failure flags, on a reset or Close. The shard's lock is held.
func (q *queuePair) purgeCompletions() {
	q.sendCQ.purgeQP(q.num)
	if q.recvCQ != q.sendCQ {
		q.recvCQ.purgeQP(q.num)
	}
	q.failureLogged, q.overran, q.refusalLogged = false, false, false
}

// Query implements verbs.QP.
func (q *queuePair) Query() (verbs.QPAttr, verbs.QPInitAttr) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	init := verbs.QPInitAttr{
		Type: q.core.Type(), SendCQ: q.sendCQ, RecvCQ: q.recvCQ, Cap: q.core.Cap(),
		SelectiveSignaling: q.selective, SignalAll: q.signalAll, NoCredits: q.noCredits, MaxDatagramRDMA: q.maxRDMA,
		Congestion: q.congestion,
	}
	if q.srq != nil {
		init.SRQ = q.srq
	}
	return q.core.Query(), init
}

// PostSend implements verbs.QP. Packets that fit the window leave before it
// returns, in one system call with the pending acknowledgements; in the middle
// of a stream, or in a run of posts without a poll, they may be held back to be coalesced.
func (q *queuePair) PostSend(wrs []verbs.SendWR) (int, error) { return q.postSend(wrs, false) }

// postSend posts requests: all or none of them, or those before the first that is refused.
func (q *queuePair) postSend(wrs []verbs.SendWR, together bool) (n int, err error) {
	s := q.shard
	s.mu.Lock()
	if q.closed || q.dev.unusable.Load() {
		defer s.mu.Unlock()
		return 0, q.checkUsable("post send")
	}
	var handleErr error
	if q.datagram {
		wrs, handleErr = q.checkHandles(wrs)
	}
	if together && handleErr != nil {
		s.mu.Unlock()
		return 0, handleErr
	}
	if s.icm != nil {
		s.icm.loadContext(q.num)
	}
	s.activity.posts++
	now := q.dev.now()
	if c := q.recvCQ; c.byEvent.Load() && c.channel.notify != nil {
		s.acknowledgeFirst(q, now)
	}
	if together {
		n, err = len(wrs), q.core.PostSendAll(now, wrs)
	} else {
		n, err = q.core.PostSend(now, wrs)
	}
	if err == nil {
		err = handleErr
	}
	s.drainQP(q, now)
	if s.corkStream(q) || s.corkBurst(q, now) || s.leaveToLeader() {
		s.unlock()
		return n, err
	}
	s.drainAcks(now)
	s.flush()
	s.unlock()
	return n, err
}

// checkHandles returns the requests up to the first with an address handle that
// is closed or of another protection domain, and the error for that one.
func (q *queuePair) checkHandles(wrs []verbs.SendWR) ([]verbs.SendWR, error) {
	for i := range wrs {
		switch ah, ok := wrs[i].AH.(*addressHandle); {
		case !ok: // the core refuses it
		case ah == nil:
			return wrs[:i], q.newOpError("post send", verbs.ErrInvalid, "the address handle is nil")
		case ah.pd != q.pd:
			return wrs[:i], q.newOpError("post send", verbs.ErrDomain, "the address handle belongs to another protection domain than the queue pair")
		case ah.closed.Load():
			return wrs[:i], q.newOpError("post send", verbs.ErrClosed, "the address handle is closed")
		}
	}
	return wrs, nil
}

func (q *queuePair) newOpError(op string, err error, detail string) error {
	return &verbs.OpError{Op: op, Object: q.core.String(), Err: err, Detail: detail}
}

// PostRecv implements verbs.QP.
func (q *queuePair) PostRecv(wrs []verbs.RecvWR) (int, error) {
	s := q.shard
	s.mu.Lock()
	if q.closed || q.dev.unusable.Load() {
		defer s.mu.Unlock()
		return 0, q.checkUsable("post receive")
	}
	s.activity.posts++
	n, err := q.core.PostRecv(wrs)
	if q.core.StreamStalled() {
		now := q.dev.now()
		q.core.ResumeStream(now)
		s.drainStream(q, now)
	}
	if q.core.HasPendingAck() && !q.ackQueued { // the peer had run out of credits
		now := q.dev.now()
		s.drainQP(q, now)
		s.drainAcks(now)
		s.flush()
	}
	s.unlock()
	return n, err
}

// Close implements verbs.QP.
func (q *queuePair) Close() error {
	s := q.shard
	s.mu.Lock()
	if q.closed {
		s.mu.Unlock()
		return nil
	}
	defer q.dev.emitLogs()
	if !q.dev.unusable.Load() {
		s.flushBeforeClose(q, q.dev.now())
	}
	q.core.ReleaseSharedRecv()
	q.stopConnecting()
	s.detachStream(q)
	q.purgeCompletions()
	s.removeQP(q)
	q.pd.unbindQP(q.num) // before another queue pair can get the number
	q.dev.qps.remove(q)
	q.dev.retired.add(QPCounters(q.core.Counters()))
	s.mu.Unlock()
	q.dev.groups.detachAll(q)
	if q.srq != nil {
		q.srq.removeQP()
	}
	q.sendCQ.removeUser()
	q.recvCQ.removeUser()
	q.pd.release(kindQP)
	return nil
}

func (q *queuePair) counters() QPCounters {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return QPCounters(q.core.Counters())
}
