//go:build linux

package uverbs

import (
	"github.com/softrnic/softrnic/internal/qpstate"
	"github.com/softrnic/softrnic/verbs"
)

// knownAttrs are the attributes of package verbs, whose values are those of the kernel (enum
// ib_qp_attr_mask).
const knownAttrs = verbs.AttrState | verbs.AttrCurState | verbs.AttrEnSQDAsyncNotify | verbs.AttrAccessFlags | verbs.AttrPKeyIndex |
	verbs.AttrPort | verbs.AttrQKey | verbs.AttrAV | verbs.AttrPathMTU | verbs.AttrTimeout | verbs.AttrRetryCnt | verbs.AttrRNRRetry |
	verbs.AttrRQPSN | verbs.AttrMaxQPRdAtomic | verbs.AttrMinRNRTimer | verbs.AttrSQPSN | verbs.AttrMaxDestRdAtomic | verbs.AttrDestQPN

// Modify implements verbs.QP. The state table is checked here, because the kernel has one error for
// everything; the values of the attributes are checked by the kernel.
func (q *queuePair) Modify(a verbs.QPAttr, mask verbs.QPAttrMask) error {
	const op = "modify QP"
	d := q.pd.dev
	if err := q.checkOpen(d, op, q); err != nil {
		return err
	}
	q.modifying.Lock()
	defer q.modifying.Unlock()
	if mask&^knownAttrs != 0 {
		return invalidError(op, q.String(), "mask %v has unknown attributes", mask&^knownAttrs)
	}
	now, err := q.queryState()
	if err != nil {
		return opError(op, q.String(), err)
	}
	from, to := now, now
	if mask&verbs.AttrState != 0 {
		to = a.State
	}
	if err := qpstate.CheckTransition(q.init.Type, from, to, mask); err != nil {
		return &verbs.OpError{Op: op, Object: q.String(), Err: err}
	}
	body := modifyQP{
		handle: q.handle, mask: uint32(mask), qkey: a.QKey, recvPSN: a.RQPSN, sendPSN: a.SQPSN, peer: a.DestQPN,
		access: uint32(a.AccessFlags &^ verbs.AccessOptional), pkey: a.PKeyIndex, state: uint8(to), currentState: uint8(a.CurState),
		mtu: uint8(a.PathMTU), maxReads: a.MaxRdAtomic, maxPeerReads: a.MaxDestRdAtomic, rnrTimer: a.MinRNRTimer,
		port: a.PortNum, timeout: a.Timeout, retries: a.RetryCnt, rnrRetries: a.RNRRetry,
	}
	if a.EnSQDAsyncNotify {
		body.notifySQD = 1
	}
	if mask&verbs.AttrAV != 0 {
		a.AV.PortNum = max(a.AV.PortNum, 1)
		if body.destination, err = d.encodeDestination(op, a.AV); err != nil {
			return err
		}
	}
	if err := execute(d.file, cmdModifyQP, &body, &none{}); err != nil {
		return opError(op, q.String(), err)
	}
	q.state.Store(uint32(to))
	if to != verbs.StateErr {
		q.failed.Store(false)
	}
	if to == verbs.StateReset {
		q.resetRings()
		q.dropCompletions()
	}
	return nil
}

// resetRings drops the requests that the kernel has not consumed: the producer, whose index the
// kernel only reads, returns to the consumer.
func (q *queuePair) resetRings() {
	q.sendMu.Lock()
	q.ring.dropUnconsumed()
	q.sendMu.Unlock()
	q.receives.mu.Lock()
	q.receives.ring.dropUnconsumed()
	q.receives.mu.Unlock()
}

// queryAttrs returns the kernel's attributes.
func (q *queuePair) queryAttrs() (r queryQPResponse, err error) {
	err = execute(q.pd.dev.file, cmdQueryQP, &queryQP{q.handle, uint32(knownAttrs)}, &r)
	return r, err
}

func (q *queuePair) queryState() (verbs.QPState, error) {
	r, err := q.queryAttrs()
	return verbs.QPState(r.state), err
}

// State implements verbs.QP. It is that of the kernel, or StateErr for a closed queue pair.
func (q *queuePair) State() verbs.QPState {
	s, err := q.queryState()
	if err != nil {
		return verbs.StateErr
	}
	return s
}

// Query implements verbs.QP.
func (q *queuePair) Query() (verbs.QPAttr, verbs.QPInitAttr) {
	r, err := q.queryAttrs()
	if err != nil {
		return verbs.QPAttr{State: verbs.StateErr, CurState: verbs.StateErr}, q.init
	}
	return verbs.QPAttr{
		State: verbs.QPState(r.state), CurState: verbs.QPState(r.currentState), PathMTU: verbs.MTU(r.mtu), QKey: r.qkey,
		RQPSN: r.recvPSN, SQPSN: r.sendPSN, DestQPN: r.peer, AccessFlags: verbs.AccessFlags(r.access),
		AV: q.pd.dev.decodeDestination(&r.destination), PKeyIndex: r.pkey, SQDraining: r.draining != 0,
		MaxRdAtomic: r.maxReads, MaxDestRdAtomic: r.maxPeerReads, MinRNRTimer: r.rnrTimer, PortNum: r.port,
		Timeout: r.timeout, RetryCnt: r.retries, RNRRetry: r.rnrRetries,
	}, q.init
}
