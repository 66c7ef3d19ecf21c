package verbs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

var (
	here  = endpoint("gid=10.0.0.1,port=4791,qpn=0x11,psn=0x111111,mtu=4096,buffer=4194304")
	there = endpoint("gid=10.0.0.2,port=5000,qpn=0x22,psn=0x222222,mtu=1024,buffer=212992")
)

func endpoint(text string) verbs.Endpoint {
	var e verbs.Endpoint
	if err := e.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return e
}

// masks returns the attributes of each recorded Modify.
func (q *fakeQP) masks() []string {
	var s []string
	for _, c := range q.calls {
		s = append(s, c.to.String()+": "+c.mask.String())
	}
	return s
}

func TestConnectRC(t *testing.T) {
	qp := &fakeQP{num: 0x11, typ: verbs.RC}
	require.NoError(t, verbs.Connect(qp, here, there, verbs.ConnectOptions{}))
	require.Equal(t, verbs.StateRTS, qp.state)
	require.Equal(t, []string{
		"INIT: STATE|ACCESS_FLAGS|PKEY_INDEX|PORT",
		"RTR: STATE|AV|PATH_MTU|RQ_PSN|MIN_RNR_TIMER|MAX_DEST_RD_ATOMIC|DEST_QPN",
		"RTS: STATE|TIMEOUT|RETRY_CNT|RNR_RETRY|MAX_QP_RD_ATOMIC|SQ_PSN",
	}, qp.masks())
	require.Equal(t, verbs.QPAttr{
		State:       verbs.StateRTS,
		PathMTU:     verbs.MTU1024,
		RQPSN:       0x222222, // the peer announces the PSN that it sends first
		SQPSN:       0x111111,
		DestQPN:     0x22,
		AccessFlags: verbs.AccessRemote,
		AV: verbs.AHAttr{
			DGID:       there.GID,
			UDPPort:    5000,
			PortNum:    1,
			PeerBuffer: 212992,
		},
		MaxRdAtomic:     16,
		MaxDestRdAtomic: 16,
		MinRNRTimer:     12,
		PortNum:         1,
		Timeout:         14,
		RetryCnt:        7,
		RNRRetry:        7,
	}, qp.attr)
}

func TestConnectUC(t *testing.T) {
	qp := &fakeQP{num: 0x11, typ: verbs.UC}
	require.NoError(t, verbs.Connect(qp, here, there, verbs.ConnectOptions{}))
	require.Equal(t, []string{
		"INIT: STATE|ACCESS_FLAGS|PKEY_INDEX|PORT",
		"RTR: STATE|AV|PATH_MTU|RQ_PSN|DEST_QPN",
		"RTS: STATE|SQ_PSN",
	}, qp.masks())
}

func TestConnectOptions(t *testing.T) {
	connect := func(o verbs.ConnectOptions) verbs.QPAttr {
		t.Helper()
		qp := &fakeQP{num: 0x11, typ: verbs.RC}
		require.NoError(t, verbs.Connect(qp, here, there, o))
		return qp.attr
	}

	a := connect(verbs.ConnectOptions{
		Access: verbs.AccessRemoteRead, MTU: verbs.MTU256, AckTimeout: 4 * time.Second, Retries: 3, RNRRetries: 2,
		RNRDelay: time.Microsecond, MaxRdAtomic: 4, MaxDestRdAtomic: 5,
	})
	require.Equal(t, verbs.AccessRemoteRead, a.AccessFlags)
	require.Equal(t, verbs.MTU256, a.PathMTU)
	require.Equal(t, []uint8{20, 3, 2, 1, 4, 5},
		[]uint8{a.Timeout, a.RetryCnt, a.RNRRetry, a.MinRNRTimer, a.MaxRdAtomic, a.MaxDestRdAtomic})

	a = connect(verbs.ConnectOptions{
		Access: verbs.AccessLocalWrite, AckTimeout: -time.Second, Retries: -1, RNRRetries: -1,
		RNRDelay: 655360 * time.Microsecond, MaxRdAtomic: -1, MaxDestRdAtomic: -1,
	})
	require.Zero(t, a.AccessFlags&verbs.AccessRemote)
	require.Equal(t, make([]uint8, 6),
		[]uint8{a.Timeout, a.RetryCnt, a.RNRRetry, a.MinRNRTimer, a.MaxRdAtomic, a.MaxDestRdAtomic})
}

// TestConnectTimes checks that a time is rounded up to the next one that has a code.
func TestConnectTimes(t *testing.T) {
	for _, c := range []struct {
		ack, rnr         time.Duration
		timeout, rnrCode uint8
	}{
		{0, 0, 14, 12},
		{1, 1, 1, 1},
		{verbs.AckTimeout(1), 10 * time.Microsecond, 1, 1},
		{verbs.AckTimeout(1) + 1, 10*time.Microsecond + 1, 2, 2},
		{time.Second, time.Millisecond, 18, 14},
		{verbs.AckTimeout(31), 655360 * time.Microsecond, 31, 0},
		{verbs.AckTimeout(30) + 1, 491520*time.Microsecond + 1, 31, 0},
		{-1, 491520 * time.Microsecond, 0, 31},
	} {
		a, err := verbs.ConnectOptions{AckTimeout: c.ack, RNRDelay: c.rnr}.QPAttr(verbs.RC)
		require.NoError(t, err)
		require.Equal(t, []uint8{c.timeout, c.rnrCode}, []uint8{a.Timeout, a.MinRNRTimer}, "%+v", c)
	}
	for code := uint8(1); code <= 31; code++ {
		a, err := verbs.ConnectOptions{AckTimeout: verbs.AckTimeout(code)}.QPAttr(verbs.RC)
		require.NoError(t, err)
		require.Equal(t, code, a.Timeout)
	}
}

// TestConnectMTU checks that the default is the smaller of the known MTUs.
func TestConnectMTU(t *testing.T) {
	for _, c := range []struct{ ours, theirs, want verbs.MTU }{
		{verbs.MTU4096, verbs.MTU1024, verbs.MTU1024},
		{verbs.MTU512, verbs.MTU1024, verbs.MTU512},
		{0, verbs.MTU2048, verbs.MTU2048},
		{verbs.MTU256, 0, verbs.MTU256},
	} {
		local, remote := here, there
		local.MTU, remote.MTU = c.ours, c.theirs
		qp := &fakeQP{num: 0x11, typ: verbs.RC}
		require.NoError(t, verbs.Connect(qp, local, remote, verbs.ConnectOptions{}))
		require.Equal(t, c.want, qp.attr.PathMTU)
	}
}

// TestConnectRdAtomic checks that the limit of an endpoint is served, and bounds the peer.
func TestConnectRdAtomic(t *testing.T) {
	for _, c := range []struct {
		ours, theirs  uint8 // of the endpoints
		asked, serves int   // of the options
		outstanding   uint8
		served        uint8
	}{
		{0, 0, 0, 0, 16, 16},
		{0, 0, 64, 0, 64, 16},
		{16, 16, 0, 0, 16, 16},
		{16, 4, 0, 0, 4, 16},
		{16, 64, 0, 0, 16, 16},
		{64, 64, 64, 0, 64, 64},
		{16, 16, 16, 3, 16, 3},
		{4, 16, -1, -1, 0, 0},
	} {
		local, remote := here, there
		local.RdAtomic, remote.RdAtomic = c.ours, c.theirs
		qp := &fakeQP{num: 0x11, typ: verbs.RC}
		require.NoError(t, verbs.Connect(qp, local, remote, verbs.ConnectOptions{MaxRdAtomic: c.asked, MaxDestRdAtomic: c.serves}))
		require.Equal(t, []uint8{c.outstanding, c.served}, []uint8{qp.attr.MaxRdAtomic, qp.attr.MaxDestRdAtomic}, "%+v", c)
	}
	remote := there
	remote.RdAtomic = 16
	qp := &fakeQP{num: 0x11, typ: verbs.RC}
	err := verbs.Connect(qp, here, remote, verbs.ConnectOptions{MaxRdAtomic: 17})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "ConnectOptions.MaxRdAtomic: 17 out of range [-1, 16]")
	require.Empty(t, qp.calls)
}

// TestConnectFromInit checks that the access of ToInit stays unless the options set it.
func TestConnectFromInit(t *testing.T) {
	qp := &fakeQP{num: 0x11, typ: verbs.RC}
	require.NoError(t, verbs.ToInit(qp, verbs.AccessRemoteWrite))
	require.Equal(t, verbs.StateInit, qp.state)
	require.Equal(t, verbs.AccessRemoteWrite, qp.attr.AccessFlags)
	require.NoError(t, verbs.Connect(qp, here, there, verbs.ConnectOptions{}))
	require.Len(t, qp.calls, 3)
	require.Zero(t, qp.calls[1].mask&verbs.AttrAccessFlags)

	qp = &fakeQP{num: 0x11, typ: verbs.RC, state: verbs.StateInit}
	require.NoError(t, verbs.Connect(qp, here, there, verbs.ConnectOptions{Access: verbs.AccessRemoteRead}))
	require.NotZero(t, qp.calls[0].mask&verbs.AttrAccessFlags)
	require.Equal(t, verbs.AccessRemoteRead, qp.calls[0].attr.AccessFlags)
}

func TestConnectRefuses(t *testing.T) {
	with := func(e verbs.Endpoint, change func(*verbs.Endpoint)) verbs.Endpoint {
		change(&e)
		return e
	}
	noMTU := func(e *verbs.Endpoint) { e.MTU = 0 }
	rc := fakeQP{num: 0x11, typ: verbs.RC}
	for _, c := range []struct {
		name          string
		qp            fakeQP
		local, remote verbs.Endpoint
		options       verbs.ConnectOptions
		is            error
		says          string
	}{
		{"UD", fakeQP{num: 0x11, typ: verbs.UD}, here, there, verbs.ConnectOptions{},
			verbs.ErrUnsupported, "UD has no connections; use ActivateUD"},
		{"connected", fakeQP{num: 0x11, typ: verbs.RC, state: verbs.StateRTS}, here, there, verbs.ConnectOptions{},
			verbs.ErrState, "queue pair is in RTS; Modify it to StateReset first"},
		{"exchanged", rc, there, here, verbs.ConnectOptions{},
			verbs.ErrInvalid, "the local endpoint is that of QP 0x22"},
		{"unset remote", rc, here, verbs.Endpoint{}, verbs.ConnectOptions{},
			verbs.ErrInvalid, "no address"},
		{"multicast remote", rc, here, with(there, func(e *verbs.Endpoint) { e.GID[12] = 239 }), verbs.ConnectOptions{},
			verbs.ErrInvalid, "multicast"},
		{"families", rc, here, with(there, func(e *verbs.Endpoint) { e.GID = verbs.GID{0xfe, 0x80, 15: 1} }), verbs.ConnectOptions{},
			verbs.ErrInvalid, "10.0.0.1 and fe80::1 are of different families"},
		{"no MTU", rc, with(here, noMTU), with(there, noMTU), verbs.ConnectOptions{},
			verbs.ErrInvalid, "ConnectOptions.MTU: required"},
		{"bad MTU", rc, here, there, verbs.ConnectOptions{MTU: 6},
			verbs.ErrInvalid, "ConnectOptions.MTU: 6 out of range [0, 5]"},
		{"timeout", rc, here, there, verbs.ConnectOptions{AckTimeout: 3 * time.Hour},
			verbs.ErrInvalid, "ConnectOptions.AckTimeout: 3h0m0s out of range [0, 2h26m36"},
		{"RNR delay", rc, here, there, verbs.ConnectOptions{RNRDelay: time.Second},
			verbs.ErrInvalid, "ConnectOptions.RNRDelay: 1s out of range [0, 655.36ms]"},
		{"negative RNR delay", rc, here, there, verbs.ConnectOptions{RNRDelay: -1},
			verbs.ErrInvalid, "ConnectOptions.RNRDelay: -1ns out of range [0, 655.36ms]"},
		{"retries", rc, here, there, verbs.ConnectOptions{Retries: 8},
			verbs.ErrInvalid, "ConnectOptions.Retries: 8 out of range [-1, 7]"},
		{"RNR retries", rc, here, there, verbs.ConnectOptions{RNRRetries: -2},
			verbs.ErrInvalid, "ConnectOptions.RNRRetries: -2 out of range [-1, 7]"},
		{"reads", rc, here, there, verbs.ConnectOptions{MaxRdAtomic: 256},
			verbs.ErrInvalid, "ConnectOptions.MaxRdAtomic: 256 out of range [-1, 255]"},
		{"reads served", rc, here, there, verbs.ConnectOptions{MaxDestRdAtomic: -2},
			verbs.ErrInvalid, "ConnectOptions.MaxDestRdAtomic: -2 out of range [-1, 255]"},
		{"unknown access flags", rc, here, there, verbs.ConnectOptions{Access: 0x8000},
			verbs.ErrInvalid, "ConnectOptions.Access: unknown flags in AccessFlags(0x8000)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := verbs.Connect(&c.qp, c.local, c.remote, c.options)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, "verbs: QP 0x11 to gid=")
			require.ErrorContains(t, err, c.says)
			var op *verbs.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, "connect", op.Op)
			require.Empty(t, c.qp.calls, "nothing may change before the check is over")
		})
	}
}

// TestModifyErrorsPassThrough checks that errors of the adapter are returned.
func TestModifyErrorsPassThrough(t *testing.T) {
	failure := errors.New("no route to peer")
	for _, at := range []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
		qp := &fakeQP{num: 0x11, typ: verbs.RC, failAt: at, failure: failure}
		require.ErrorIs(t, verbs.Connect(qp, here, there, verbs.ConnectOptions{}), failure)
		qp = &fakeQP{num: 0x11, typ: verbs.UD, failAt: at, failure: failure}
		require.ErrorIs(t, verbs.ActivateUD(qp, 1, 2), failure)
	}

	qp := &fakeQP{num: 0x11, typ: verbs.RC, state: verbs.StateErr}
	err := verbs.ToInit(qp, 0)
	var transition *verbs.TransitionError
	require.ErrorAs(t, err, &transition)
	require.EqualError(t, err, "verbs: QP 0x11: initialize: QP 0x11: modify: RC queue pair cannot go from ERR to INIT")
}

func TestActivateUD(t *testing.T) {
	qp := &fakeQP{num: 0x11, typ: verbs.UD}
	require.NoError(t, verbs.ActivateUD(qp, 0x11111111, 0xabcdef))
	require.Equal(t, []string{
		"INIT: STATE|PKEY_INDEX|PORT|QKEY",
		"RTR: STATE",
		"RTS: STATE|SQ_PSN",
	}, qp.masks())
	require.Equal(t, verbs.QPAttr{State: verbs.StateRTS, PortNum: 1, QKey: 0x11111111, SQPSN: 0xabcdef}, qp.attr)

	qp = &fakeQP{num: 0x11, typ: verbs.UD, state: verbs.StateInit}
	require.NoError(t, verbs.ActivateUD(qp, 5, 6))
	require.Equal(t, []string{"RTR: STATE|QKEY", "RTS: STATE|SQ_PSN"}, qp.masks())

	require.ErrorIs(t, verbs.ActivateUD(&fakeQP{typ: verbs.RC}, 0, 0), verbs.ErrUnsupported)
	require.ErrorIs(t, verbs.ActivateUD(&fakeQP{typ: verbs.GSI}, 0, 0), verbs.ErrUnsupported)
	require.ErrorIs(t, verbs.ActivateUD(&fakeQP{typ: verbs.UD, state: verbs.StateRTS}, 0, 0), verbs.ErrState)
	require.ErrorIs(t, verbs.ActivateUD(&fakeQP{typ: verbs.UD}, 0, 1<<24), verbs.ErrInvalid)
	require.ErrorIs(t, verbs.ToInit(&fakeQP{typ: verbs.UD}, 0), verbs.ErrUnsupported)
}

// TestConnectNil checks that functions for queue pairs refuse nil.
func TestConnectNil(t *testing.T) {
	_, noQP := verbs.LocalEndpoint(nil, nil, 1)
	for _, err := range []error{
		noQP, verbs.Connect(nil, verbs.Endpoint{}, verbs.Endpoint{}, verbs.ConnectOptions{}), verbs.ToInit(nil, 0), verbs.ActivateUD(nil, 0, 1),
	} {
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "verbs: queue pair: ")
	}
}
