package cm

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// Defaults of verbs.ConnectOptions, the same as those of verbs.Connect.
const (
	defaultTimeout     = 14 // 67 ms
	defaultRetryCnt    = 7
	defaultMinRNRTimer = 12 // 0.64 ms
	defaultRdAtomic    = 16
)

// orDefault resolves a field of verbs.ConnectOptions: 0 means the default, verbs.Zero means 0.
func orDefault[T ~uint8 | ~uint32](v, def T) T {
	switch v {
	case 0:
		return def
	case verbs.Zero:
		return 0
	}
	return v
}

// checkConnectOptions returns an error for options out of range. It clears the options that do
// not apply to a queue pair of type typ.
func checkConnectOptions(o *verbs.ConnectOptions, typ verbs.QPType) error {
	if typ == verbs.UC {
		o.Timeout, o.MinRNRTimer, o.RetryCnt, o.RNRRetry, o.MaxRdAtomic, o.MaxDestRdAtomic = 0, 0, 0, 0, 0, 0
	}
	for _, f := range []struct {
		name      string
		have, max uint8
	}{
		{"Timeout", o.Timeout, 31}, {"MinRNRTimer", o.MinRNRTimer, 31}, {"RetryCnt", o.RetryCnt, 7}, {"RNRRetry", o.RNRRetry, 7},
		{"MTU", uint8(o.MTU), uint8(verbs.MTU4096)},
	} {
		if f.have > f.max && f.have != verbs.Zero {
			return fmt.Errorf("%w: %s %d, maximum %d", verbs.ErrInvalid, f.name, f.have, f.max)
		}
	}
	return nil
}

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

// remoteAccess returns the remote access rights of a queue pair: o.Access, or by default write,
// plus read and atomic if served is not 0.
func remoteAccess(o *verbs.ConnectOptions, served uint8) verbs.AccessFlags {
	def := verbs.AccessRemoteWrite
	if served > 0 {
		def = verbs.AccessRemote
	}
	return orDefault(o.Access, def)
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
