// Package qpstate has the state table of queue pairs, which all adapters of this module share: the
// transitions with their attributes, the opcodes of each service, and the states that accept posts.
package qpstate

import "github.com/softrnic/softrnic/verbs"

// A transition is one row of the state table: the attributes that a Modify from
// one state to another requires and permits. Sources: ibv_modify_qp(3) and the
// kernel's table in drivers/infiniband/core/verbs.c.
type transition struct {
	from, to           verbs.QPState
	required, optional [3]verbs.QPAttrMask // RC, UC, UD (and GSI)
}

const (
	mPKey   = verbs.AttrPKeyIndex
	mPort   = verbs.AttrPort
	mAcc    = verbs.AttrAccessFlags
	mQKey   = verbs.AttrQKey
	mAV     = verbs.AttrAV
	mRNR    = verbs.AttrMinRNRTimer
	mCur    = verbs.AttrCurState
	mNotify = verbs.AttrEnSQDAsyncNotify
	mRetry  = verbs.AttrTimeout | verbs.AttrRetryCnt | verbs.AttrRNRRetry
	mInit   = mPKey | mPort | mAcc
	mToRTR  = mAV | verbs.AttrPathMTU | verbs.AttrDestQPN | verbs.AttrRQPSN
)

const (
	sReset = verbs.StateReset
	sInit  = verbs.StateInit
	sRTR   = verbs.StateRTR
	sRTS   = verbs.StateRTS
	sSQD   = verbs.StateSQD
	sSQE   = verbs.StateSQE
	sErr   = verbs.StateErr
)

type masks = [3]verbs.QPAttrMask

var transitions = []transition{
	{sReset, sInit, masks{mInit, mInit, mPKey | mPort | mQKey}, masks{}},
	{sInit, sInit, masks{}, masks{mInit, mInit, mPKey | mPort | mQKey}},
	{sInit, sRTR, masks{mToRTR | verbs.AttrMaxDestRdAtomic | mRNR, mToRTR, 0}, masks{mAcc | mPKey, mAcc | mPKey, mPKey | mQKey}},
	{sRTR, sRTS, masks{mRetry | verbs.AttrSQPSN | verbs.AttrMaxQPRdAtomic, verbs.AttrSQPSN, verbs.AttrSQPSN}, masks{mCur | mAcc | mRNR, mCur | mAcc, mCur | mQKey}},
	{sRTS, sRTS, masks{}, masks{mCur | mAcc | mRNR, mCur | mAcc, mCur | mQKey}},
	{sRTS, sSQD, masks{}, masks{mNotify, mNotify, mNotify}},
	{sSQD, sSQD, masks{}, masks{mPort | mAV | mRetry | verbs.AttrMaxQPRdAtomic | verbs.AttrMaxDestRdAtomic | mAcc | mPKey | mRNR, mAV | mAcc | mPKey, mPKey | mQKey}},
	{sSQD, sRTS, masks{}, masks{mCur | mAcc | mRNR, mCur | mAcc, mCur | mQKey}},
	{sSQE, sRTS, masks{}, masks{0, mCur | mAcc, mCur | mQKey}},
}

// kindIndex returns the column of the state table for a transport type.
func kindIndex(t verbs.QPType) int {
	switch t {
	case verbs.RC:
		return 0
	case verbs.UC:
		return 1
	}
	return 2
}

// RequiredAttrs returns the attributes that a transition requires.
func RequiredAttrs(t verbs.QPType, from, to verbs.QPState) verbs.QPAttrMask {
	for _, tr := range transitions {
		if tr.from == from && tr.to == to {
			return tr.required[kindIndex(t)]
		}
	}
	return 0
}

// CheckTransition validates a Modify against the state table. Its error is a
// *verbs.TransitionError.
func CheckTransition(t verbs.QPType, from, to verbs.QPState, mask verbs.QPAttrMask) error {
	mask &^= verbs.AttrState
	bad := &verbs.TransitionError{Type: t, From: from, To: to}
	k := kindIndex(t)
	if to == sReset || to == sErr && from != sReset {
		bad.Legal, bad.Extra = true, mask
		if mask == 0 {
			return nil
		}
		return bad
	}
	for _, tr := range transitions {
		if tr.from != from || tr.to != to || from == sSQE && k == 0 {
			continue
		}
		bad.Legal = true
		bad.Missing = tr.required[k] &^ mask
		bad.Extra = mask &^ (tr.required[k] | tr.optional[k])
		if bad.Missing|bad.Extra == 0 {
			return nil
		}
		return bad
	}
	return bad
}

// SupportsOpcode reports whether queue pairs of type t support the opcode.
func SupportsOpcode(t verbs.QPType, op verbs.WROpcode) bool {
	switch op {
	case verbs.WRSend, verbs.WRSendWithImm:
		return true
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm, verbs.WRLocalInv, verbs.WRBindMW:
		return t == verbs.RC || t == verbs.UC
	case verbs.WRRDMARead, verbs.WRAtomicCmpSwap, verbs.WRAtomicFetchAdd, verbs.WRSendWithInv, verbs.WRFlush, verbs.WRAtomicWrite:
		return t == verbs.RC
	}
	return false
}

// MaySend reports whether requests can be posted in state s. In SQE and ERR
// they are flushed.
func MaySend(s verbs.QPState) bool { return s == sRTS || s == sSQD || s == sSQE || s == sErr }

// MayReceive reports whether receives can be posted in state s.
func MayReceive(s verbs.QPState) bool { return s != sReset }
