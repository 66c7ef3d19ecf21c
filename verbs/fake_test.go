package verbs_test

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// fakeQP is a queue pair without an adapter. It has the state table for the transitions from RESET
// to RTS and records the attributes of Modify.
type fakeQP struct {
	verbs.QP // other methods panic
	num      uint32
	typ      verbs.QPType
	state    verbs.QPState
	attr     verbs.QPAttr // all attributes set
	calls    []fakeModify
	failAt   verbs.QPState // Modify to this state fails with failure
	failure  error
}

type fakeModify struct {
	to   verbs.QPState
	mask verbs.QPAttrMask
	attr verbs.QPAttr
}

func (q *fakeQP) Num() uint32          { return q.num }
func (q *fakeQP) Type() verbs.QPType   { return q.typ }
func (q *fakeQP) State() verbs.QPState { return q.state }

func (q *fakeQP) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask) error {
	if q.failure != nil && attr.State == q.failAt {
		return q.failure
	}
	required, optional, legal := attrsOf(q.typ, q.state, attr.State)
	e := &verbs.TransitionError{
		Type: q.typ, From: q.state, To: attr.State, Legal: legal,
		Missing: required &^ mask,
		Extra:   mask &^ (required | optional),
	}
	if !legal || e.Missing != 0 || e.Extra != 0 {
		return &verbs.OpError{Op: "modify", Object: fmt.Sprintf("QP %#x", q.num), Err: e}
	}
	q.calls = append(q.calls, fakeModify{attr.State, mask, attr})
	q.attr, q.state = attr, attr.State
	return nil
}

// attrsOf is the part of the state table (InfiniBand specification 11.2.5.2, as in the kernel's
// qp_state_table) from RESET to RTS.
func attrsOf(typ verbs.QPType, from, to verbs.QPState) (required, optional verbs.QPAttrMask, legal bool) {
	const (
		entry   = verbs.AttrPKeyIndex | verbs.AttrPort
		ucRTR   = verbs.AttrAV | verbs.AttrPathMTU | verbs.AttrDestQPN | verbs.AttrRQPSN
		rcRTR   = ucRTR | verbs.AttrMaxDestRdAtomic | verbs.AttrMinRNRTimer
		rcRTS   = verbs.AttrTimeout | verbs.AttrRetryCnt | verbs.AttrRNRRetry | verbs.AttrSQPSN | verbs.AttrMaxQPRdAtomic
		connOpt = verbs.AttrAccessFlags | verbs.AttrPKeyIndex
	)
	type step struct {
		typ      verbs.QPType
		from, to verbs.QPState
	}
	table := map[step][2]verbs.QPAttrMask{
		{verbs.RC, verbs.StateReset, verbs.StateInit}: {entry | verbs.AttrAccessFlags, 0},
		{verbs.UC, verbs.StateReset, verbs.StateInit}: {entry | verbs.AttrAccessFlags, 0},
		{verbs.UD, verbs.StateReset, verbs.StateInit}: {entry | verbs.AttrQKey, 0},
		{verbs.RC, verbs.StateInit, verbs.StateRTR}:   {rcRTR, connOpt},
		{verbs.UC, verbs.StateInit, verbs.StateRTR}:   {ucRTR, connOpt},
		{verbs.UD, verbs.StateInit, verbs.StateRTR}:   {0, verbs.AttrPKeyIndex | verbs.AttrQKey},
		{verbs.RC, verbs.StateRTR, verbs.StateRTS}:    {rcRTS, verbs.AttrCurState | verbs.AttrAccessFlags | verbs.AttrMinRNRTimer},
		{verbs.UC, verbs.StateRTR, verbs.StateRTS}:    {verbs.AttrSQPSN, verbs.AttrCurState | verbs.AttrAccessFlags},
		{verbs.UD, verbs.StateRTR, verbs.StateRTS}:    {verbs.AttrSQPSN, verbs.AttrCurState | verbs.AttrQKey},
	}
	masks, legal := table[step{typ, from, to}]
	return verbs.AttrState | masks[0], masks[1], legal
}

// fakeDevice has one port with one address.
type fakeDevice struct {
	verbs.Device
	port    verbs.PortAttr
	gid     verbs.GID
	serves  int // reads and atomics
	failure error
}

func (d fakeDevice) QueryDevice() verbs.DeviceAttr { return verbs.DeviceAttr{MaxQPRdAtom: d.serves} }

func (d fakeDevice) QueryPort(port int) (verbs.PortAttr, error) {
	if port != 1 {
		return verbs.PortAttr{}, verbs.ErrInvalid
	}
	return d.port, d.failure
}

func (d fakeDevice) QueryGID(port, index int) (verbs.GIDEntry, error) {
	if port != 1 || index != 0 {
		return verbs.GIDEntry{}, verbs.ErrInvalid
	}
	return verbs.GIDEntry{GID: d.gid, Index: index, Port: port, Type: verbs.GIDRoCEv2}, nil
}
