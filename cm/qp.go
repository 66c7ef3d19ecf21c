package cm

import (
	"cmp"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// initQP moves a queue pair to StateInit, unless it is there already, posts receives and calls
// prepare, if it is not nil.
func initQP(qp verbs.QP, access verbs.AccessFlags, receives []verbs.RecvWR, prepare func(verbs.QP) error) error {
	switch s := qp.State(); s {
	case verbs.StateInit:
	case verbs.StateReset:
		if err := verbs.ToInit(qp, access); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: queue pair in %v; modify it to StateReset first", verbs.ErrState, s)
	}
	return prepareQP(qp, receives, prepare)
}

// prepareQP posts receives to a queue pair in StateInit and calls prepare, if it is not nil.
func prepareQP(qp verbs.QP, receives []verbs.RecvWR, prepare func(verbs.QP) error) error {
	if len(receives) > 0 {
		if _, err := qp.PostRecv(receives); err != nil {
			return fmt.Errorf("Options.Receives: %w", err)
		}
	}
	if prepare == nil {
		return nil
	}
	if err := prepare(qp); err != nil {
		return fmt.Errorf("Options.Prepare: %w", err)
	}
	return nil
}

// remoteAccess returns the remote access rights of a queue pair that serves as many reads and
// atomics at a time: o.Access, or by default write, plus read and atomic if served is not 0.
func remoteAccess(o *verbs.ConnectOptions, served uint8) verbs.AccessFlags {
	if o.Access == 0 && served == 0 {
		return verbs.AccessRemoteWrite
	}
	return cmp.Or(o.Access, verbs.AccessRemote)
}

// modifyToRTS moves a queue pair from StateInit to StateRTS.
func modifyToRTS(qp verbs.QP, a verbs.QPAttr, setAccess bool) error {
	toRTR := verbs.AttrState | verbs.AttrAV | verbs.AttrPathMTU | verbs.AttrDestQPN | verbs.AttrRQPSN
	toRTS := verbs.AttrState | verbs.AttrSQPSN
	if qp.Type() == verbs.RC {
		toRTR |= verbs.AttrMaxDestRdAtomic | verbs.AttrMinRNRTimer
		toRTS |= verbs.AttrTimeout | verbs.AttrRetryCnt | verbs.AttrRNRRetry | verbs.AttrMaxQPRdAtomic
	}
	if setAccess {
		toRTR |= verbs.AttrAccessFlags
	}
	a.State = verbs.StateRTR
	if err := qp.Modify(a, toRTR); err != nil {
		return err
	}
	a.State = verbs.StateRTS
	return qp.Modify(a, toRTS)
}

// modifyToErr moves a queue pair to StateErr, which flushes its posted work requests.
func modifyToErr(qp verbs.QP) {
	if s := qp.State(); s != verbs.StateReset && s != verbs.StateErr {
		_ = qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // fails only if the queue pair is destroyed
	}
}

// creditsAndSRQ reports whether a queue pair's acknowledgements carry end-to-end credits, and
// whether it uses a shared receive queue.
func creditsAndSRQ(qp verbs.QP) (credits, shared bool) {
	_, init := qp.Query()
	return init.Type == verbs.RC && init.SRQ == nil && !init.NoCredits, init.SRQ != nil
}
