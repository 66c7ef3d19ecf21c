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
// everything, and so are values that rxe accepts and should not.
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
	is, err := q.queryAttrs()
	if err != nil {
		return opError(op, q.String(), err)
	}
	now := verbs.QPState(is.state)
	from, to := now, now
	if mask&verbs.AttrState != 0 {
		to = a.State
	}
	if err := qpstate.CheckTransition(q.init.Type, from, to, mask); err != nil {
		return &verbs.OpError{Op: op, Object: q.String(), Err: err}
	}
	if now == verbs.StateSQD && is.draining != 0 && to != verbs.StateErr && to != verbs.StateReset {
		return &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrState, Detail: "the send queue is draining; wait for EventSQDrained"}
	}
	if mask&verbs.AttrCurState != 0 && a.CurState != now {
		return invalidError(op, q.String(), "cur_state is %v, the queue pair is in %v", a.CurState, now)
	}
	if err := q.checkAttrs(op, &a, mask); err != nil {
		return err
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

// checkAttrs validates attributes that rxe does not.
func (q *queuePair) checkAttrs(op string, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	const maxQPN, maxPSN = 1<<24 - 2, 1<<24 - 1
	switch {
	case mask&verbs.AttrDestQPN != 0 && (a.DestQPN == 0 || a.DestQPN > maxQPN):
		return invalidError(op, q.String(), "destination QPN %#x: want 1 to %#x", a.DestQPN, maxQPN)
	case mask&verbs.AttrPathMTU != 0 && a.PathMTU.Bytes() == 0:
		return invalidError(op, q.String(), "path MTU %d: want MTU256 (1) to MTU4096 (5)", a.PathMTU)
	case mask&verbs.AttrRQPSN != 0 && a.RQPSN > maxPSN, mask&verbs.AttrSQPSN != 0 && a.SQPSN > maxPSN:
		return invalidError(op, q.String(), "a PSN has 24 bits")
	case mask&verbs.AttrPKeyIndex != 0 && a.PKeyIndex != 0:
		return invalidError(op, q.String(), "P_Key index %d: rxe has one P_Key, 0xffff at index 0", a.PKeyIndex)
	case mask&verbs.AttrMinRNRTimer != 0 && a.MinRNRTimer > 31:
		return invalidError(op, q.String(), "RNR timer code %d: want 0 to 31", a.MinRNRTimer)
	case mask&verbs.AttrTimeout != 0 && a.Timeout > 31:
		return invalidError(op, q.String(), "timeout code %d: want 0 to 31", a.Timeout)
	case mask&verbs.AttrRetryCnt != 0 && a.RetryCnt > 7, mask&verbs.AttrRNRRetry != 0 && a.RNRRetry > 7:
		return invalidError(op, q.String(), "retry counts %d and %d: want 0 to 7", a.RetryCnt, a.RNRRetry)
	case mask&verbs.AttrMaxQPRdAtomic != 0 && uint32(a.MaxRdAtomic) > q.pd.dev.attr.maxQPInitReads,
		mask&verbs.AttrMaxDestRdAtomic != 0 && uint32(a.MaxDestRdAtomic) > q.pd.dev.attr.maxQPReads:
		return invalidError(op, q.String(), "%d and %d outstanding reads and atomics: want at most %d and %d", a.MaxRdAtomic, a.MaxDestRdAtomic,
			q.pd.dev.attr.maxQPInitReads, q.pd.dev.attr.maxQPReads)
	case mask&verbs.AttrAV == 0:
		return nil
	}
	if d := a.AV.DGID.Addr(); a.AV.DGID.IsZero() || d.IsUnspecified() || d.IsMulticast() {
		return invalidError(op, q.String(), "destination %v: want the address of one adapter", d)
	}
	local, err := q.pd.dev.QueryGID(int(max(a.AV.PortNum, 1)), a.AV.SGIDIndex)
	if err != nil {
		return err
	}
	if l, d := local.GID.Addr(), a.AV.DGID.Addr(); l.Is4() != d.Is4() {
		return invalidError(op, q.String(), "destination %v and the local address %v, GID %d, are of different families", d, l, a.AV.SGIDIndex)
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

// decodeDestination returns the address vector of the queue pair, or the zero one if none is set.
func (q *queuePair) decodeDestination(d *qpDestination) verbs.AHAttr {
	if d.dgid == (verbs.GID{}) {
		return verbs.AHAttr{}
	}
	return q.pd.dev.decodeDestination(d)
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
	switch {
	case err != nil:
		return verbs.QPAttr{State: verbs.StateErr, CurState: verbs.StateErr}, q.init
	case verbs.QPState(r.state) == verbs.StateReset: // rxe returns defaults, and what was set before
		return verbs.QPAttr{State: verbs.StateReset}, q.init
	}
	return verbs.QPAttr{
		State: verbs.QPState(r.state), CurState: verbs.QPState(r.state), PathMTU: verbs.MTU(r.mtu), QKey: r.qkey,
		RQPSN: r.recvPSN, SQPSN: r.sendPSN, DestQPN: r.peer, AccessFlags: verbs.AccessFlags(r.access),
		AV: q.decodeDestination(&r.destination), PKeyIndex: r.pkey, SQDraining: r.draining != 0,
		MaxRdAtomic: r.maxReads, MaxDestRdAtomic: r.maxPeerReads, MinRNRTimer: r.rnrTimer, PortNum: r.port,
		Timeout: r.timeout, RetryCnt: r.retries, RNRRetry: r.rnrRetries,
	}, q.init
}
