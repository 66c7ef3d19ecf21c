package verbs

import (
	"cmp"
	"fmt"
)

// Zero in a field of ConnectOptions stands for the value 0, because 0 itself
// stands for the default.
const Zero = 0xff

// ConnectOptions are the options of a connection. The zero value of a field is
// its default; Zero stands for the value 0.
type ConnectOptions struct {
	// Access is the remote access of the peer through this queue pair;
	// AccessRemote by default. A queue pair already in StateInit keeps its own.
	Access AccessFlags

	// MTU of the path; by default the largest that fits both ends' ports and, as
	// far as the system knows it, the path from here. Both ends must use the
	// same: set it if the two directions differ. ErrLimit if it does not fit.
	MTU MTU

	// The following apply to RC only; UC does not acknowledge, read or retry,
	// and ignores them.
	Timeout         uint8 // code of the local ACK timeout, 14 (67 ms) by default, effectively at least 12 (16.8 ms); Zero waits forever
	RetryCnt        uint8 // repetitions after a timeout or a NAK, 7 by default
	RNRRetry        uint8 // repetitions after an RNR NAK, 7 (forever) by default
	MinRNRTimer     uint8 // code of the delay in RNR NAKs sent, 12 (0.64 ms) by default; Zero is 655 ms
	MaxRdAtomic     uint8 // reads and atomics outstanding, by default 16 or the limit of the peer's endpoint, if less; more than that limit are refused
	MaxDestRdAtomic uint8 // reads and atomics served at a time, by default RdAtomic of the local endpoint, or 16; the peer relies on the endpoint's

	// Fields of the address vector: 0 by default, HopLimit 64.
	SL, TrafficClass, HopLimit uint8
	FlowLabel                  uint32
}

// defaultRdAtomic is the default number of reads and atomics outstanding, and
// served, at a time.
const defaultRdAtomic = 16

// orDefault returns the value of a field of ConnectOptions.
func orDefault[T ~uint8 | ~uint32](v, def T) T {
	switch v {
	case 0:
		return def
	case Zero:
		return 0
	}
	return v
}

// withoutRC returns the options that apply to UC.
func (o ConnectOptions) withoutRC() ConnectOptions {
	o.Timeout, o.RetryCnt, o.RNRRetry, o.MinRNRTimer, o.MaxRdAtomic, o.MaxDestRdAtomic = 0, 0, 0, 0, 0, 0
	return o
}

// qpAttr returns the attributes of a queue pair connected with these options.
func (o ConnectOptions) qpAttr(local, remote Endpoint) (QPAttr, error) {
	if err := local.validate(); err != nil {
		return QPAttr{}, fmt.Errorf("local endpoint: %w", err)
	}
	err := remote.validate()
	if remote.GID.Addr().IsUnspecified() {
		err = remote.invalidError("no address; use the result of LocalEndpoint at the peer")
	}
	if err != nil {
		return QPAttr{}, fmt.Errorf("remote endpoint: %w", err)
	}
	if from, to := local.GID.Addr(), remote.GID.Addr(); from.Is4() != to.Is4() {
		return QPAttr{}, fmt.Errorf("%w: addresses %v and %v are of different families", ErrInvalid, from, to)
	}
	a := QPAttr{
		PathMTU:     orDefault(o.MTU, commonMTU(local.MTU, remote.MTU)),
		RQPSN:       remote.PSN,
		SQPSN:       local.PSN,
		DestQPN:     remote.QPN,
		AccessFlags: orDefault(o.Access, AccessRemote),
		AV: AHAttr{
			DGID:         remote.GID,
			UDPPort:      remote.UDPPort,
			PortNum:      1,
			PeerBuffer:   remote.RecvBuffer,
			SL:           o.SL,
			TrafficClass: o.TrafficClass,
			HopLimit:     o.HopLimit,
			FlowLabel:    o.FlowLabel,
		},
		PortNum:         1,
		Timeout:         orDefault(o.Timeout, 14),
		RetryCnt:        orDefault(o.RetryCnt, 7),
		RNRRetry:        orDefault(o.RNRRetry, 7),
		MinRNRTimer:     orDefault(o.MinRNRTimer, 12),
		MaxRdAtomic:     orDefault(o.MaxRdAtomic, min(defaultRdAtomic, cmp.Or(remote.RdAtomic, defaultRdAtomic))),
		MaxDestRdAtomic: orDefault(o.MaxDestRdAtomic, cmp.Or(local.RdAtomic, defaultRdAtomic)),
	}
	switch {
	case remote.RdAtomic != 0 && a.MaxRdAtomic > remote.RdAtomic:
		return a, fmt.Errorf("%w: ConnectOptions.MaxRdAtomic is %d, but the peer serves %d reads and atomics at a time and would end the connection at one more; ask for as many, or raise RdAtomic of the endpoint that the peer gives away",
			ErrInvalid, a.MaxRdAtomic, remote.RdAtomic)
	case a.PathMTU == 0:
		return a, fmt.Errorf("%w: neither end knows its MTU; set ConnectOptions.MTU", ErrInvalid)
	case a.PathMTU > MTU4096:
		return a, fmt.Errorf("%w: ConnectOptions.MTU %d is none of MTU256 to MTU4096", ErrInvalid, uint8(a.PathMTU))
	case a.Timeout > 31 || a.MinRNRTimer > 31:
		return a, fmt.Errorf("%w: Timeout %d and MinRNRTimer %d are codes up to 31", ErrInvalid, a.Timeout, a.MinRNRTimer)
	case a.RetryCnt > 7 || a.RNRRetry > 7:
		return a, fmt.Errorf("%w: RetryCnt %d and RNRRetry %d go up to 7", ErrInvalid, a.RetryCnt, a.RNRRetry)
	}
	return a, nil
}

// commonMTU returns the smaller of two MTUs of which either may be unknown (0).
func commonMTU(a, b MTU) MTU {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Connect takes an RC or UC queue pair from StateReset or StateInit to
// StateRTS, connected to remote. The peer calls it with the two endpoints
// exchanged. A packet that arrives before its receiver is in StateRTR is
// dropped, which RC repairs and UC does not.
//
// If Connect fails, the queue pair may be in an intermediate state; Modify it to
// StateReset before a retry.
func Connect(qp QP, local, remote Endpoint, o ConnectOptions) error {
	if err := connectQP(qp, local, remote, o); err != nil {
		return &OpError{Op: "connect", Object: objectQP(qp.Num()) + " to " + remote.String(), Err: err}
	}
	return nil
}

func connectQP(qp QP, local, remote Endpoint, o ConnectOptions) error {
	typ, state := qp.Type(), qp.State()
	if typ != RC && typ != UC {
		return fmt.Errorf("%w: %v has no connections; ActivateUD makes it ready", ErrUnsupported, typ)
	}
	if err := checkFresh(state); err != nil {
		return err
	}
	if local.QPN != qp.Num() {
		return fmt.Errorf("%w: the local endpoint is that of %s; are local and remote exchanged?", ErrInvalid, objectQP(local.QPN))
	}
	if typ == UC {
		o, remote.RdAtomic = o.withoutRC(), 0
	}
	a, err := o.qpAttr(local, remote)
	if err != nil {
		return err
	}

	if o.MTU == 0 {
		a.PathMTU = FitPathMTU(qp, a.AV, a.PathMTU)
	}
	if err := CheckPathMTU(qp, a.AV, a.PathMTU); err != nil {
		return err
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

// ToInit takes an RC or UC queue pair from StateReset to StateInit on port 1,
// where receives may be posted. If it is called before the peer gets the
// endpoint, no message arrives without a receive. Connect continues from there.
func ToInit(qp QP, access AccessFlags) error {
	if err := toInit(qp, access); err != nil {
		return &OpError{Op: "initialize", Object: objectQP(qp.Num()), Err: err}
	}
	return nil
}

func toInit(qp QP, access AccessFlags) error {
	if typ := qp.Type(); typ != RC && typ != UC {
		return fmt.Errorf("%w: %v gives no remote access; ActivateUD makes it ready", ErrUnsupported, typ)
	}
	return modifyTo(qp, StateInit, QPAttr{PortNum: 1, AccessFlags: access}, toInitAttrs|AttrAccessFlags)
}

// ActivateUD takes a UD queue pair from StateReset or StateInit to StateRTS on
// port 1: it accepts datagrams with qkey, and sends from psn on. Datagrams
// without a posted receive are dropped.
func ActivateUD(qp QP, qkey, psn uint32) error {
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
