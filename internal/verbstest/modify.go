package verbstest

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// ModifyToState modifies a new queue pair to a state, on the way through those before. Connected ones
// get a peer that does not exist, at an address.
func ModifyToState(t testing.TB, q verbs.QP, s verbs.QPState, peer netip.AddrPort) {
	t.Helper()
	move := func(to verbs.QPState, mask verbs.QPAttrMask) {
		require.NoError(t, q.Modify(verbs.QPAttr{State: to, PortNum: 1, PathMTU: verbs.MTU1024, DestQPN: 5, MaxRdAtomic: 1, MaxDestRdAtomic: 1,
			AV: verbs.AHAttr{DGID: verbs.GIDFromAddr(peer.Addr()), UDPPort: peer.Port()}}, verbs.AttrState|mask))
	}
	toInit, toRTR, toRTS := verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrAccessFlags,
		verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN, verbs.AttrSQPSN
	switch q.Type() {
	case verbs.RC:
		toRTR |= verbs.AttrMaxDestRdAtomic | verbs.AttrMinRNRTimer
		toRTS |= verbs.AttrTimeout | verbs.AttrRetryCnt | verbs.AttrRNRRetry | verbs.AttrMaxQPRdAtomic
	case verbs.UD:
		toInit, toRTR = verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey, 0
	}
	for _, step := range []struct {
		to   verbs.QPState
		mask verbs.QPAttrMask
	}{{verbs.StateInit, toInit}, {verbs.StateRTR, toRTR}, {verbs.StateRTS, toRTS}} {
		if s == verbs.StateReset {
			break
		}
		move(step.to, step.mask)
		if s == step.to {
			break
		}
	}
	if s == verbs.StateSQD || s == verbs.StateErr {
		move(s, 0)
	}
	require.Equal(t, s, q.State())
}
