package qp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/qpstate"
	"github.com/softrnic/softrnic/verbs"
)

// attrNames has the attributes with the names of ibv_modify_qp.
var attrNames = map[string]verbs.QPAttrMask{
	"CUR_STATE": verbs.AttrCurState, "EN_SQD_ASYNC_NOTIFY": verbs.AttrEnSQDAsyncNotify, "ACCESS_FLAGS": verbs.AttrAccessFlags,
	"PKEY_INDEX": verbs.AttrPKeyIndex, "PORT": verbs.AttrPort, "QKEY": verbs.AttrQKey, "AV": verbs.AttrAV,
	"PATH_MTU": verbs.AttrPathMTU, "TIMEOUT": verbs.AttrTimeout, "RETRY_CNT": verbs.AttrRetryCnt, "RNR_RETRY": verbs.AttrRNRRetry,
	"RQ_PSN": verbs.AttrRQPSN, "MAX_QP_RD_ATOMIC": verbs.AttrMaxQPRdAtomic, "MIN_RNR_TIMER": verbs.AttrMinRNRTimer,
	"SQ_PSN": verbs.AttrSQPSN, "MAX_DEST_RD_ATOMIC": verbs.AttrMaxDestRdAtomic, "DEST_QPN": verbs.AttrDestQPN,
}

// stateTable is the kernel's table of transitions (drivers/infiniband/core/verbs.c) without
// alternate paths, which RoCE does not have: from, to, service, required and optional attributes.
const stateTable = `
RESET INIT RC | PKEY_INDEX PORT ACCESS_FLAGS |
RESET INIT UC | PKEY_INDEX PORT ACCESS_FLAGS |
RESET INIT UD | PKEY_INDEX PORT QKEY |
INIT INIT RC | | PKEY_INDEX PORT ACCESS_FLAGS
INIT INIT UC | | PKEY_INDEX PORT ACCESS_FLAGS
INIT INIT UD | | PKEY_INDEX PORT QKEY
INIT RTR RC | AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER | ACCESS_FLAGS PKEY_INDEX
INIT RTR UC | AV PATH_MTU DEST_QPN RQ_PSN | ACCESS_FLAGS PKEY_INDEX
INIT RTR UD | | PKEY_INDEX QKEY
RTR RTS RC | TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC | CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER
RTR RTS UC | SQ_PSN | CUR_STATE ACCESS_FLAGS
RTR RTS UD | SQ_PSN | CUR_STATE QKEY
RTS RTS RC | | CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER
RTS RTS UC | | CUR_STATE ACCESS_FLAGS
RTS RTS UD | | CUR_STATE QKEY
RTS SQD RC | | EN_SQD_ASYNC_NOTIFY
RTS SQD UC | | EN_SQD_ASYNC_NOTIFY
RTS SQD UD | | EN_SQD_ASYNC_NOTIFY
SQD SQD RC | | PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER
SQD SQD UC | | AV ACCESS_FLAGS PKEY_INDEX
SQD SQD UD | | PKEY_INDEX QKEY
SQD RTS RC | | CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER
SQD RTS UC | | CUR_STATE ACCESS_FLAGS
SQD RTS UD | | CUR_STATE QKEY
SQE RTS UC | | CUR_STATE ACCESS_FLAGS
SQE RTS UD | | CUR_STATE QKEY
`

var stateNames = []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

type rule struct{ required, optional verbs.QPAttrMask }

// rules parses the table.
func rules(t *testing.T) map[string]rule {
	m := map[string]rule{}
	mask := func(names string) (k verbs.QPAttrMask) {
		for _, n := range strings.Fields(names) {
			require.NotZero(t, attrNames[n], n)
			k |= attrNames[n]
		}
		return k
	}
	for _, line := range strings.Split(strings.TrimSpace(stateTable), "\n") {
		f := strings.Split(line, "|")
		m[strings.TrimSpace(f[0])] = rule{mask(f[1]), mask(f[2])}
	}
	require.Len(t, m, 26)
	// Any state to RESET, and any except RESET to ERR, without other attributes.
	for i, s := range stateNames {
		for _, typ := range []string{"RC", "UC", "UD"} {
			m[s+" RESET "+typ] = rule{}
			if i > 0 {
				m[s+" ERR "+typ] = rule{}
			}
		}
	}
	return m
}

// TestTransitions checks every pair of states and every service, with the required attributes, each
// one missing, each additional one, and random masks.
func TestTransitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table := rules(t)
	services := map[string]verbs.QPType{"RC": verbs.RC, "UC": verbs.UC, "UD": verbs.UD}
	var all verbs.QPAttrMask
	for _, k := range attrNames {
		all |= k
	}
	for name, typ := range services {
		for from, fromName := range stateNames {
			for to, toName := range stateNames {
				r, legal := table[fromName+" "+toName+" "+name]
				masks := []verbs.QPAttrMask{0, all, r.required, r.required | r.optional}
				for _, k := range attrNames {
					masks = append(masks, r.required^k, (r.required|r.optional)^k)
				}
				for range 50 {
					k := verbs.QPAttrMask(rng.Uint32()) & all
					masks = append(masks, k, r.required|k&r.optional)
				}
				for _, mask := range masks {
					err := qpstate.CheckTransition(typ, verbs.QPState(from), verbs.QPState(to), mask|verbs.AttrState)
					missing, extra := r.required&^mask, mask&^(r.required|r.optional)
					what := fmt.Sprintf("%s %s to %s with %v", name, fromName, toName, mask)
					if legal && missing|extra == 0 {
						require.NoError(t, err, what)
						continue
					}
					var te *verbs.TransitionError
					require.ErrorIs(t, err, verbs.ErrInvalid, what)
					require.ErrorAs(t, err, &te, what)
					require.Equal(t, verbs.TransitionError{Type: typ, From: verbs.QPState(from), To: verbs.QPState(to), Legal: legal,
						Missing: te.Missing, Extra: te.Extra}, *te)
					if legal {
						require.Equal(t, missing, te.Missing, what)
						require.Equal(t, extra, te.Extra, what)
					}
				}
			}
		}
	}
}

// TestModifyAndQuery checks that a refused Modify changes nothing, and that Query returns the
// attributes as set.
func TestModifyAndQuery(t *testing.T) {
	p := unconnected(t)
	o := newOptions(nil)
	full := attributes(p.b, 5, 6, o)
	full.MaxRdAtomic, full.MaxDestRdAtomic = MaxRdAtomic, MaxRdAtomic
	full.State = verbs.StateInit
	require.NoError(t, p.a.Modify(1, &full, verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrAccessFlags))
	toRTR := verbs.AttrState | qpstate.RequiredAttrs(verbs.RC, verbs.StateInit, verbs.StateRTR)
	full.State = verbs.StateRTR
	for what, change := range map[string]func(a *verbs.QPAttr){
		"MTU":         func(a *verbs.QPAttr) { a.PathMTU = 6 },
		"no MTU":      func(a *verbs.QPAttr) { a.PathMTU = 0 },
		"QPN 0":       func(a *verbs.QPAttr) { a.DestQPN = 0 },
		"multicast":   func(a *verbs.QPAttr) { a.DestQPN = 0xffffff },
		"wide QPN":    func(a *verbs.QPAttr) { a.DestQPN = 1 << 24 },
		"wide PSN":    func(a *verbs.QPAttr) { a.RQPSN = 1 << 24 },
		"RNR timer":   func(a *verbs.QPAttr) { a.MinRNRTimer = 32 },
		"reads":       func(a *verbs.QPAttr) { a.MaxDestRdAtomic = MaxRdAtomic + 1 },
		"no GID":      func(a *verbs.QPAttr) { a.AV.DGID = verbs.GID{} },
		"a group":     func(a *verbs.QPAttr) { a.AV.DGID = verbs.GID{0: 0xff, 1: 2} },
		"0.0.0.0 GID": func(a *verbs.QPAttr) { a.AV.DGID = verbs.GID{10: 0xff, 11: 0xff} },
	} {
		a := full
		change(&a)
		before := p.a.Query()
		require.ErrorIs(t, p.a.Modify(1, &a, toRTR), verbs.ErrInvalid, what)
		require.Equal(t, before, p.a.Query(), what)
	}
	require.NoError(t, p.a.Modify(1, &full, toRTR))
	full.State = verbs.StateRTS
	toRTS := verbs.AttrState | qpstate.RequiredAttrs(verbs.RC, verbs.StateRTR, verbs.StateRTS)
	for what, change := range map[string]func(a *verbs.QPAttr){
		"timeout":   func(a *verbs.QPAttr) { a.Timeout = 32 },
		"retry_cnt": func(a *verbs.QPAttr) { a.RetryCnt = 8 },
		"rnr_retry": func(a *verbs.QPAttr) { a.RNRRetry = 8 },
		"wide PSN":  func(a *verbs.QPAttr) { a.SQPSN = 1 << 24 },
		"reads":     func(a *verbs.QPAttr) { a.MaxRdAtomic = MaxRdAtomic + 1 },
	} {
		a := full
		change(&a)
		require.ErrorIs(t, p.a.Modify(1, &a, toRTS), verbs.ErrInvalid, what)
	}
	cur := full
	cur.CurState = verbs.StateInit
	require.ErrorIs(t, p.a.Modify(1, &cur, toRTS|verbs.AttrCurState), verbs.ErrInvalid)
	cur.CurState = verbs.StateRTR
	require.NoError(t, p.a.Modify(1, &cur, toRTS|verbs.AttrCurState))
	want := full
	want.CurState, want.QKey = verbs.StateRTS, 0
	require.Equal(t, want, p.a.Query())
	require.Equal(t, p.b.Num(), p.a.DestQPN())
	require.Equal(t, p.b.addr, p.a.PeerPath().Dst)
	for what, a := range map[verbs.QPAttrMask]verbs.QPAttr{
		verbs.AttrPort: {PortNum: 2}, verbs.AttrPKeyIndex: {PKeyIndex: 1},
	} {
		q := unconnected(t).a
		init := full
		init.State = verbs.StateInit
		if what == verbs.AttrPort {
			init.PortNum = a.PortNum
		} else {
			init.PKeyIndex = a.PKeyIndex
		}
		require.ErrorIs(t, q.Modify(1, &init, verbs.AttrState|qpstate.RequiredAttrs(verbs.RC, verbs.StateReset, verbs.StateInit)), verbs.ErrInvalid)
	}
}

// TestModifyErrorsName checks that errors have one of the two error types, and name the queue pair.
func TestModifyErrorsName(t *testing.T) {
	p := connect(t)
	err := p.a.Modify(1, &verbs.QPAttr{CurState: verbs.StateRTR}, verbs.AttrCurState)
	var oe *verbs.OpError
	require.True(t, errors.As(err, &oe))
	require.Equal(t, "RC QP 0x141", oe.Object)
	require.Contains(t, err.Error(), "RTR")
}
