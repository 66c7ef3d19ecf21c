package rnic

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
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

	// Guarded by the shard's lock.
	closed         bool // Close was called
	active         bool // in shard.active
	ackQueued      bool // in shard.ackQueue
	failureLogged  bool // its first failure was logged
	refusalLogged  bool // a refusal of the system to send its responses was logged
	overran        bool // a completion was lost because its queue overran
	confirmPending bool // in shard.unconfirmed
	sendBlocked    bool // its next request waits for the batch to be sent
	onRefusal      func(*verbs.RefusedError)
	timer          deadline.Entry[reliability.Time]
}

var (
	_ verbs.QP                = (*queuePair)(nil)
	_ adapter.RefusalReporter = (*queuePair)(nil)
	_ qp.Host                 = (*qpHost)(nil)
)

// CreateQP implements verbs.PD.
func (pd *protectionDomain) CreateQP(a verbs.QPInitAttr) (verbs.QP, error) {
	d, ok := pd.host.(*Device)
	if !ok {
		return nil, &verbs.OpError{Op: "create QP", Err: verbs.ErrUnsupported}
	}
	q, err := d.createQP(pd, a)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (d *Device) createQP(pd *protectionDomain, a verbs.QPInitAttr) (_ *queuePair, err error) {
	const op = "create QP"
	q := &queuePair{dev: d, pd: pd, selective: a.SelectiveSignaling, signalAll: a.SignalAll, noCredits: a.NoCredits, datagram: a.Type == verbs.UD || a.Type == verbs.GSI}
	if err := q.validateInit(op, &a); err != nil {
		return nil, err
	}
	if err := pd.addRef(kindQP, op); err != nil {
		return nil, err
	}
	undo := []func(){func() { pd.release(kindQP) }}
	defer func() {
		if err != nil {
			for i := range undo {
				undo[len(undo)-1-i]()
			}
		}
	}()
	index := int(d.nextShard.Add(1)-1) % len(d.shards)
	if a.Type == verbs.GSI {
		index = wire.QPNGSI % len(d.shards)
	}
	q.shard = d.shards[index]
	for _, c := range []*completionQueue{q.sendCQ, q.recvCQ} {
		if err := c.addUser(q.shard, a.Type == verbs.GSI); err != nil {
			return nil, &verbs.OpError{Op: op, Err: err, Detail: "completion queue of the queue pair"}
		}
		undo = append(undo, c.removeUser)
	}
	if q.srq != nil {
		if err := q.srq.addQP(pd, op); err != nil {
			return nil, err
		}
		undo = append(undo, q.srq.removeQP)
	}
	cfg := qp.Config{
		Type: a.Type, Host: (*qpHost)(q), Memory: (*pdMemory)(pd), Cap: a.Cap, SignalAll: !a.SelectiveSignaling, NoCredits: a.NoCredits,
		LocalBuffer: d.caps.RecvBuffer, PortMTU: d.activeMTU().Bytes(), MaxRDMA: a.MaxDatagramRDMA,
		ConfirmSends: true,
	}
	if q.srq != nil {
		cfg.Shared = (*sharedQueue)(q.srq)
	}
	q.shard.mu.Lock() // q must not be found before it has its core
	defer q.shard.mu.Unlock()
	if a.Type == verbs.GSI {
		q.num = wire.QPNGSI
		if !d.qps.insert(q) {
			return nil, &verbs.OpError{Op: op, Err: verbs.ErrBusy, Detail: "the device's GSI queue pair exists already"}
		}
	} else {
		d.qps.allocateNumber(q, index, len(d.shards), d.random)
	}
	cfg.Num = q.num
	q.core = qp.New(cfg)
	return q, nil
}

// validateInit validates the attributes and stores the objects they name in q.
func (q *queuePair) validateInit(op string, a *verbs.QPInitAttr) error {
	bad := func(err error, format string, args ...any) error {
		return &verbs.OpError{Op: op, Err: err, Detail: fmt.Sprintf(format, args...)}
	}
	var ok bool
	switch a.Type {
	case verbs.RC, verbs.UC, verbs.UD, verbs.GSI:
	default:
		return bad(verbs.ErrUnsupported, "queue pair type %v", a.Type)
	}
	if a.SelectiveSignaling && a.SignalAll {
		return bad(verbs.ErrInvalid, "SelectiveSignaling and SignalAll exclude each other")
	}
	if q.sendCQ, ok = a.SendCQ.(*completionQueue); !ok || q.sendCQ == nil || q.sendCQ.dev != q.dev {
		return bad(verbs.ErrInvalid, "SendCQ must be a completion queue of this device")
	}
	if q.recvCQ, ok = a.RecvCQ.(*completionQueue); !ok || q.recvCQ == nil || q.recvCQ.dev != q.dev {
		return bad(verbs.ErrInvalid, "RecvCQ must be a completion queue of this device")
	}
	if a.SRQ != nil {
		if q.srq, ok = a.SRQ.(*sharedReceiveQueue); !ok || q.srq == nil {
			return bad(verbs.ErrInvalid, "SRQ must be a shared receive queue of this device")
		}
	}
	if a.MaxDatagramRDMA != 0 && a.Type != verbs.UD {
		return bad(verbs.ErrUnsupported, "MaxDatagramRDMA is for UD only, not for %v", a.Type)
	}
	q.maxRDMA = a.MaxDatagramRDMA
	size := a.Cap
	if q.srq != nil { // receives are posted there
		size.MaxRecvWR, size.MaxRecvSGE = 0, 0
	}
	for _, l := range []struct {
		name      string
		have, max int
	}{
		{"MaxSendWR", size.MaxSendWR, maxQPWR}, {"MaxRecvWR", size.MaxRecvWR, maxQPWR},
		{"MaxSendSGE", size.MaxSendSGE, maxSGE}, {"MaxRecvSGE", size.MaxRecvSGE, maxSGE},
		{"MaxInlineData", size.MaxInlineData, maxInline}, {"MaxDatagramRDMA", a.MaxDatagramRDMA, qp.MaxRDMA},
	} {
		if l.have < 0 || l.have > l.max {
			return bad(verbs.ErrLimit, "%s is %d: want 0 to %d", l.name, l.have, l.max)
		}
	}
	return nil
}

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
}

// flushBeforeClose sends the pending acknowledgement when the device closes.
func (q *queuePair) flushBeforeClose() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if !q.closed {
		q.shard.flushBeforeClose(q, q.dev.now())
	}
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
	defer s.mu.Unlock()
	if err := q.checkUsable(op); err != nil {
		return err
	}
	now := q.dev.now()
	s.flushBeforeClose(q, now) // on the path in force so far
	if err := q.core.Modify(now, &attr, mask); err != nil {
		return err
	}
	if q.core.State() == verbs.StateReset {
		q.purgeCompletions()
	}
	s.drainQP(q, now)
	s.flush()
	return nil
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
	}
	if q.srq != nil {
		init.SRQ = q.srq
	}
	return q.core.Query(), init
}

// PostSend implements verbs.QP. Packets that fit the window leave before it
// returns, in one system call with the pending acknowledgements; in the middle
// of a stream they may be held back to be coalesced.
func (q *queuePair) PostSend(wrs []verbs.SendWR) (int, error) {
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
	if s.icm != nil {
		s.icm.loadContext(q.num)
	}
	s.activity.posts++
	now := q.dev.now()
	n, err := q.core.PostSend(now, wrs)
	if err == nil {
		err = handleErr
	}
	s.drainQP(q, now)
	if s.corkStream(q) || s.leaveToLeader() {
		s.mu.Unlock()
		return n, err
	}
	s.drainAcks(now)
	s.flush()
	s.mu.Unlock()
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
	if q.core.HasPendingAck() && !q.ackQueued { // the peer had run out of credits
		now := q.dev.now()
		s.drainQP(q, now)
		s.drainAcks(now)
		s.flush()
	}
	s.mu.Unlock()
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
	if !q.dev.unusable.Load() {
		s.flushBeforeClose(q, q.dev.now())
	}
	q.core.ReleaseSharedRecv()
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

// A qpHost is a queuePair as a qp.Host.
type qpHost queuePair

// Complete implements qp.Host. The shard's lock is held.
func (h *qpHost) Complete(wc verbs.WC, solicited bool) {
	q := (*queuePair)(h)
	if wc.Status != verbs.WCSuccess {
		q.logFailure(&wc)
	}
	c := q.sendCQ
	if wc.Opcode.IsRecv() {
		c = q.recvCQ
	}
	if !c.pushCompletion(&wc, solicited) {
		q.overran = true
	}
}

// failOverrun moves a queue pair whose completions were lost to the error
// state. The shard's lock is held.
func (q *queuePair) failOverrun(now reliability.Time) {
	q.overran = false
	if s := q.core.State(); s == verbs.StateReset || s == verbs.StateErr {
		return
	}
	_ = q.core.Modify(now, &verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // always allowed
	q.raiseEvent(verbs.EventQPFatal, &verbs.Failure{
		Event: "a completion was not written: the completion queue overran",
		Cause: "create one with the depth of all queues that use it together, and poll more often",
	})
}

// Event implements qp.Host. The shard's lock is held.
func (h *qpHost) Event(t verbs.EventType, failure *verbs.Failure) {
	(*queuePair)(h).raiseEvent(t, failure)
}

// Path implements qp.Host.
func (h *qpHost) Path(ah verbs.AH) *wire.Path {
	if a, ok := ah.(*addressHandle); ok {
		return &a.path
	}
	return nil
}

// RDMAPeer implements qp.Host.
func (h *qpHost) RDMAPeer(ah verbs.AH) *qp.Peer {
	if p, ok := ah.(*peerHandle); ok && p != nil {
		return p.peer
	}
	return nil
}

func (q *queuePair) raiseEvent(t verbs.EventType, failure *verbs.Failure) {
	q.dev.raiseEvent(verbs.AsyncEvent{Type: t, QP: q, Failure: failure})
}

// logFailure logs the first failure of a queue pair with its flight recorder at
// level debug: the program gets the failure as a completion.
func (q *queuePair) logFailure(wc *verbs.WC) {
	if q.failureLogged || wc.Status == verbs.WCWRFlushErr || q.datagram && wc.Opcode != verbs.WCSend && !wc.Opcode.IsRecv() {
		return // RDMA of a UD queue pair fails alone
	}
	q.failureLogged = true
	if q.dev.log.Enabled(context.Background(), slog.LevelDebug) {
		q.dev.log.Debug("queue pair failed", "device", q.dev.name, "qp", fmt.Sprintf("0x%x", q.num), "cause", wc.Err(),
			"history", recordLog(q.records()))
	}
}

// A recordLog formats a flight recorder for a log.
type recordLog []Record

func (l recordLog) String() string {
	var b []byte
	for _, e := range l {
		b = fmt.Appendf(b, "%.3fms %s; ", float64(e.At)/1e6, e.Text)
	}
	return string(b)
}
