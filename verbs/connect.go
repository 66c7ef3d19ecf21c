package verbs

import "fmt"

// commonMTU returns the smaller of two MTUs of which either may be unknown (0).
func commonMTU(a, b MTU) MTU {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Connect modifies an RC or UC queue pair from StateReset or StateInit to StateRTS,
// connected to remote. The peer calls it with local and remote exchanged. A packet
// that arrives before its receiver is in StateRTR is dropped: RC retransmits it, UC
// loses it.
//
// If Connect fails, the queue pair may be in any state; modify it to StateReset before
// another attempt.
func Connect(qp QP, local, remote Endpoint, o ConnectOptions) error {
	if qp == nil {
		return &OpError{Op: "connect", Object: "queue pair", Err: errNilQP}
	}
	if err := connectQP(qp, local, remote, o); err != nil {
		return &OpError{Op: "connect", Object: objectQP(qp.Num()) + " to " + remote.String(), Err: err}
	}
	return nil
}

// A pathFitter is a queue pair that knows the MTU of paths, an optional interface of adapters.
type pathFitter interface {
	// FitPathMTU returns the largest MTU up to mtu whose packets fit the path to the adapter at
	// av, 0 if none does, and an error if that is not mtu.
	FitPathMTU(av AHAttr, mtu MTU) (MTU, error)
}

var errNilQP = fmt.Errorf("%w: nil", ErrInvalid)

func connectQP(qp QP, local, remote Endpoint, o ConnectOptions) error {
	typ, state := qp.Type(), qp.State()
	if typ != RC && typ != UC {
		return fmt.Errorf("%w: %v has no connections; use ActivateUD", ErrUnsupported, typ)
	}
	if err := checkFresh(state); err != nil {
		return err
	}
	if local.QPN != qp.Num() {
		return fmt.Errorf("%w: the local endpoint is that of %s; local and remote may be exchanged", ErrInvalid, objectQP(local.QPN))
	}
	a, err := o.qpAttr(typ, local, remote)
	if err != nil {
		return err
	}
	if f, ok := qp.(pathFitter); ok {
		fits, err := f.FitPathMTU(a.AV, a.PathMTU)
		if err != nil && (o.MTU != 0 || fits == 0) {
			return err
		}
		a.PathMTU = fits
	}

	toRTR := AttrAV | AttrPathMTU | AttrDestQPN | AttrRQPSN
	toRTS := AttrSQPSN
	if typ == RC {
		toRTR |= AttrMaxDestRdAtomic | AttrMinRNRTimer
		toRTS |= AttrTimeout | AttrRetryCnt | AttrRNRRetry | AttrMaxQPRdAtomic
	}
	if state == StateReset {
		if err := modifyTo(qp, StateInit, a, toInitAttrs|AttrAccessFlags); err != nil {
			return err
		}
	} else if o.Access != 0 {
		toRTR |= AttrAccessFlags
	}
	if err := modifyTo(qp, StateRTR, a, toRTR); err != nil {
		return err
	}
	return modifyTo(qp, StateRTS, a, toRTS)
}

// ToInit modifies an RC or UC queue pair from StateReset to StateInit on port 1, in
// which receives may be posted, before Connect. A program that posts its receives
// before it passes its endpoint to the peer has a receive for every message.
func ToInit(qp QP, access AccessFlags) error {
	if qp == nil {
		return &OpError{Op: "initialize", Object: "queue pair", Err: errNilQP}
	}
	if err := toInit(qp, access); err != nil {
		return &OpError{Op: "initialize", Object: objectQP(qp.Num()), Err: err}
	}
	return nil
}

func toInit(qp QP, access AccessFlags) error {
	if typ := qp.Type(); typ != RC && typ != UC {
		return fmt.Errorf("%w: %v has no remote access; use ActivateUD", ErrUnsupported, typ)
	}
	return modifyTo(qp, StateInit, QPAttr{PortNum: 1, AccessFlags: access}, toInitAttrs|AttrAccessFlags)
}

// ActivateUD modifies a UD queue pair from StateReset or StateInit to StateRTS on port
// 1. It receives datagrams with qkey, and its first datagram has psn. Datagrams that
// arrive when no receive is posted are dropped.
func ActivateUD(qp QP, qkey, psn uint32) error {
	if qp == nil {
		return &OpError{Op: "activate", Object: "queue pair", Err: errNilQP}
	}
	if err := activateUD(qp, qkey, psn); err != nil {
		return &OpError{Op: "activate", Object: objectQP(qp.Num()), Err: err}
	}
	return nil
}

func activateUD(qp QP, qkey, psn uint32) error {
	typ, state := qp.Type(), qp.State()
	if typ != UD {
		return fmt.Errorf("%w: %v is not UD; Connect is for RC and UC", ErrUnsupported, typ)
	}
	if err := checkFresh(state); err != nil {
		return err
	}
	if psn > maxUint24 {
		return fmt.Errorf("%w: packet sequence number %#x has more than 24 bits", ErrInvalid, psn)
	}

	a := QPAttr{PortNum: 1, QKey: qkey, SQPSN: psn}
	var toRTR QPAttrMask
	if state == StateReset {
		if err := modifyTo(qp, StateInit, a, toInitAttrs|AttrQKey); err != nil {
			return err
		}
	} else {
		toRTR = AttrQKey
	}
	if err := modifyTo(qp, StateRTR, a, toRTR); err != nil {
		return err
	}
	return modifyTo(qp, StateRTS, a, AttrSQPSN)
}

// toInitAttrs are the attributes that every type requires for StateInit.
const toInitAttrs = AttrPKeyIndex | AttrPort

// checkFresh returns an error unless the state is StateReset or StateInit.
func checkFresh(s QPState) error {
	if s != StateReset && s != StateInit {
		return fmt.Errorf("%w: queue pair is in %v; Modify it to StateReset first", ErrState, s)
	}
	return nil
}

// modifyTo changes the state of qp, with the attributes selected by mask.
func modifyTo(qp QP, to QPState, a QPAttr, mask QPAttrMask) error {
	a.State = to
	return qp.Modify(a, AttrState|mask)
}

// objectQP formats a queue pair for an OpError.
func objectQP(num uint32) string { return fmt.Sprintf("QP %#x", num) }
