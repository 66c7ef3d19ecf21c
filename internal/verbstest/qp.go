package verbstest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// qpTypes are the types of which a program may create any number.
var qpTypes = []verbs.QPType{verbs.RC, verbs.UC, verbs.UD}

func testCreateQP(t *T) {
	e := newEnd(t)
	attr := e.dev.QueryDevice()
	for _, typ := range append(qpTypes, verbs.GSI) {
		for _, size := range []verbs.QPCap{
			{},
			{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
			{MaxSendWR: attr.MaxQPWR, MaxRecvWR: attr.MaxQPWR, MaxSendSGE: attr.MaxSGE, MaxRecvSGE: attr.MaxSGE, MaxInlineData: attr.MaxInlineData},
		} {
			q, err := e.pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: e.cq, RecvCQ: e.cq, Cap: size})
			require.NoError(t, err, "%v %+v", typ, size)
			require.Equal(t, typ, q.Type())
			require.Equal(t, verbs.StateReset, q.State())
			require.Positive(t, q.Num())
			require.NoError(t, q.Close())
		}
	}
}

func testCreateQPIllegalCaps(t *T) {
	e := newEnd(t)
	attr := e.dev.QueryDevice()
	for name, size := range map[string]verbs.QPCap{
		"MaxSendWR":     {MaxSendWR: attr.MaxQPWR + 1},
		"MaxRecvWR":     {MaxRecvWR: attr.MaxQPWR + 1},
		"MaxSendSGE":    {MaxSendSGE: attr.MaxSGE + 1},
		"MaxRecvSGE":    {MaxRecvSGE: attr.MaxSGE + 1},
		"MaxInlineData": {MaxInlineData: attr.MaxInlineData + 1},
	} {
		for _, typ := range qpTypes {
			_, err := e.pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: e.cq, RecvCQ: e.cq, Cap: size})
			require.ErrorIs(t, err, verbs.ErrLimit)
			t.explains(err, name+" is ")
			t.explains(err, "want 0 to ")
		}
	}
	t.count(e.dev, "qp", 1, "what was refused left nothing behind")
}

func testQueryQP(t *T) {
	e := newEnd(t)
	srq, err := e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1})
	require.NoError(t, err)
	for _, typ := range qpTypes {
		for _, init := range []verbs.QPInitAttr{
			{Type: typ, SendCQ: e.cq, RecvCQ: e.newCQ(t, 1), Cap: sizes},
			{Type: typ, SendCQ: e.newCQ(t, 1), RecvCQ: e.cq, Cap: sizes, SRQ: srq, SignalAll: true, NoCredits: true},
			{Type: typ, SendCQ: e.cq, RecvCQ: e.cq, Cap: sizes, SelectiveSignaling: true},
		} {
			q, err := e.pd.CreateQP(init)
			require.NoError(t, err)
			attr, got := q.Query()
			require.Equal(t, init, got)
			require.Equal(t, verbs.QPAttr{State: verbs.StateReset}, attr)
		}
	}
}

// testQueryConnectedQP sets every attribute and queries it.
func testQueryConnectedQP(t *T) {
	a, b := newEnd(t), newEnd(t)
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{Access: verbs.AccessRemoteRead, MTU: verbs.MTU512, AckTimeout: verbs.AckTimeout(10), Retries: 3,
		RNRRetries: 2, RNRDelay: 60 * time.Microsecond, MaxRdAtomic: 4, MaxDestRdAtomic: 6})
	attr, _ := a.qp.Query()
	port, err := b.dev.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, verbs.QPAttr{
		State: verbs.StateRTS, CurState: verbs.StateRTS, PathMTU: verbs.MTU512, RQPSN: 0xfffff0, SQPSN: 100, DestQPN: b.qp.Num(),
		AccessFlags: verbs.AccessRemoteRead,
		AV: verbs.AHAttr{DGID: verbs.GIDFromAddr(t.device.Addr(b.dev).Addr()), UDPPort: t.device.Addr(b.dev).Port(), PortNum: 1, HopLimit: 64,
			PeerBuffer: port.RecvBuffer, Selective: port.Selective},
		PortNum: 1, Timeout: 10, RetryCnt: 3, RNRRetry: 2, MinRNRTimer: 5, MaxRdAtomic: 4, MaxDestRdAtomic: 6,
	}, attr)
}

func testModifyUDQP(t *T) {
	e := newEndOf(t, verbs.UD)
	require.NoError(t, verbs.ActivateUD(e.qp, 0x123, 0x45))
	attr, _ := e.qp.Query()
	require.EqualValues(t, 0x123, attr.QKey)
	require.EqualValues(t, 0x45, attr.SQPSN)
	require.NoError(t, e.qp.Modify(verbs.QPAttr{QKey: 0x99}, verbs.AttrQKey), "also while it runs")
	attr, _ = e.qp.Query()
	require.EqualValues(t, 0x99, attr.QKey)
	require.NoError(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState))
	attr, _ = e.qp.Query()
	require.Equal(t, verbs.QPAttr{}, attr)
}

// testModifyQPBadFlow sets invalid attributes, which leave the queue pair unchanged.
func testModifyQPBadFlow(t *T) {
	a, b := pair(t)
	before, _ := a.qp.Query()
	q := a.newQP(t, verbs.RC)
	require.NoError(t, verbs.ToInit(q, 0))
	gid := verbs.GIDFromAddr(t.device.Addr(b.dev).Addr())
	good := verbs.QPAttr{State: verbs.StateRTR, AV: verbs.AHAttr{DGID: gid}, PathMTU: verbs.MTU1024, DestQPN: 5, MaxDestRdAtomic: 1, MinRNRTimer: 1}
	toRTR := verbs.AttrState | verbs.AttrAV | verbs.AttrPathMTU | verbs.AttrDestQPN | verbs.AttrRQPSN | verbs.AttrMaxDestRdAtomic | verbs.AttrMinRNRTimer
	for says, spoil := range map[string]func(a *verbs.QPAttr){
		"path MTU 0: want":                  func(a *verbs.QPAttr) { a.PathMTU = 0 },
		"path MTU 6: want":                  func(a *verbs.QPAttr) { a.PathMTU = 6 },
		"destination QPN 0x0: want":         func(a *verbs.QPAttr) { a.DestQPN = 0 },
		"destination QPN 0xffffff: want":    func(a *verbs.QPAttr) { a.DestQPN = 0xffffff },
		"a PSN has 24 bits":                 func(a *verbs.QPAttr) { a.RQPSN = 1 << 24 },
		"RNR timer code 32: want":           func(a *verbs.QPAttr) { a.MinRNRTimer = 32 },
		"at most 128 reads and atomics":     func(a *verbs.QPAttr) { a.MaxDestRdAtomic = 129 },
		"DGID is not set":                   func(a *verbs.QPAttr) { a.AV = verbs.AHAttr{} },
		"cannot have the multicast group":   func(a *verbs.QPAttr) { a.AV.DGID, _ = verbs.ParseGID("239.0.0.1") },
		"IPv6 address and the local one":    func(a *verbs.QPAttr) { a.AV.DGID, _ = verbs.ParseGID("fd00::1") },
		"want port 1":                       func(a *verbs.QPAttr) { a.AV.PortNum = 2 },
		"from INIT to RTS":                  func(a *verbs.QPAttr) { a.State = verbs.StateRTS },
		"cannot go from INIT to QPState(9)": func(a *verbs.QPAttr) { a.State = 9 },
	} {
		attr := good
		spoil(&attr)
		err := q.Modify(attr, toRTR)
		require.ErrorIs(t, err, verbs.ErrInvalid, says)
		t.explains(err, says)
		require.Equal(t, verbs.StateInit, q.State())
	}
	require.NoError(t, q.Modify(good, toRTR))

	err := a.qp.Modify(verbs.QPAttr{CurState: verbs.StateRTR}, verbs.AttrCurState)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	t.explains(err, "cur_state is RTR, the queue pair is in RTS")
	err = a.qp.Modify(verbs.QPAttr{DestQPN: 4}, verbs.AttrDestQPN)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	t.explains(err, "RC queue pair from RTS to RTS does not take DEST_QPN")
	after, _ := a.qp.Query()
	require.Equal(t, before, after)
}

func testModifyRCQPRdAtomic(t *T) {
	a, b := newEnd(t), newEnd(t)
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{MaxRdAtomic: 12, MaxDestRdAtomic: 12})
	attr, _ := b.qp.Query()
	require.EqualValues(t, 12, attr.MaxRdAtomic)
	require.EqualValues(t, 12, attr.MaxDestRdAtomic)
	for range 100 { // more than the limit
		a.post(t, atomicTo(a, b, 0))
	}
	for range 100 {
		a.poll1(t)
	}
	require.EqualValues(t, 100, b.mr.LoadUint64(0))
}

// testManyReads has the maximum number of outstanding reads of both endpoints; more than that of
// the peer is refused when connecting.
func testManyReads(t *T) {
	a, b := newEnd(t), newEnd(t)
	ea, err := verbs.LocalEndpoint(a.dev, a.qp, 1)
	require.NoError(t, err)
	eb, err := verbs.LocalEndpoint(b.dev, b.qp, 1)
	require.NoError(t, err)
	require.EqualValues(t, 16, eb.RdAtomic)
	many := verbs.ConnectOptions{MaxRdAtomic: 64}
	require.ErrorContains(t, verbs.Connect(a.qp, ea, eb, many), "ConnectOptions.MaxRdAtomic: 64 out of range [-1, 16]")
	eb.RdAtomic = 64
	require.NoError(t, verbs.Connect(a.qp, ea, eb, many))
	require.NoError(t, verbs.Connect(b.qp, eb, ea, verbs.ConnectOptions{}))
	var list []verbs.SendWR
	for range 100 {
		list = append(list, verbs.SendWR{Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled,
			SGList: []verbs.SGE{a.mr.SGE(0, 4096)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	}
	_, err = a.qp.PostSend(list)
	require.NoError(t, err)
	for range list {
		a.poll1(t)
	}
}

// testUDQPPrivilegedQKey sets a Q_Key with its top bit; a send with the bit uses the queue pair's
// own.
func testUDQPPrivilegedQKey(t *T) {
	const privileged = 0x80000000
	a, b := newEndOf(t, verbs.UD), newEndOf(t, verbs.UD)
	for _, e := range []*end{a, b} {
		require.NoError(t, verbs.ActivateUD(e.qp, privileged, 0))
		attr, _ := e.qp.Query()
		require.Equal(t, uint32(privileged), attr.QKey)
	}
	b.recv(t, 1, 0, 100)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, AH: a.handle(t, b.dev), RemoteQPN: b.qp.Num(), RemoteQKey: privileged | 5})
	a.poll1(t)
	require.EqualValues(t, 40, b.poll1(t).ByteLen)
}

// testGSI exchanges datagrams between the management queue pairs, whose number and Q_Key are
// constant. A device has one.
func testGSI(t *T) {
	a, b := newEndOf(t, verbs.GSI), newEndOf(t, verbs.GSI)
	require.EqualValues(t, 1, a.qp.Num())
	q, err := a.pd.CreateQP(verbs.QPInitAttr{Type: verbs.GSI, SendCQ: a.cq, RecvCQ: a.cq, Cap: sizes})
	require.ErrorIs(t, err, verbs.ErrBusy)
	t.explains(err, "the device's GSI queue pair exists already")
	require.True(t, q == nil, "and not an interface around nil")
	for _, e := range []*end{a, b} {
		require.NoError(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: 1}, verbs.AttrState|verbs.AttrPort|verbs.AttrPKeyIndex|verbs.AttrQKey))
		require.NoError(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.AttrState))
		require.NoError(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState|verbs.AttrSQPSN))
	}
	b.recv(t, 1, 0, 300)
	fill(a.mr.Bytes()[:256], 1)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, AH: a.handle(t, b.dev), RemoteQPN: 1, SGList: []verbs.SGE{a.mr.SGE(0, 256)}})
	a.poll1(t)
	wc := b.poll1(t)
	require.EqualValues(t, 1, wc.SrcQPN)
	require.Equal(t, a.mr.Bytes()[:256], b.mr.Bytes()[40:296])
	require.NoError(t, a.qp.Close())
	a.qp = a.newQP(t, verbs.GSI)
}

// newQPInState modifies a new queue pair to a state.
func (e *end) newQPInState(t *T, typ verbs.QPType, s verbs.QPState) verbs.QP {
	t.Helper()
	q := e.newQP(t, typ)
	ModifyToState(t, q, s, t.device.Addr(e.dev))
	return q
}

func testPostReceiveStateBadFlow(t *T) {
	e := newEnd(t)
	for _, typ := range qpTypes {
		_, err := e.newQPInState(t, typ, verbs.StateReset).PostRecv(recv0)
		require.ErrorIs(t, err, verbs.ErrState)
		t.explains(err, "state RESET; modify it to INIT first")
		for _, s := range []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS, verbs.StateSQD} {
			n, err := e.newQPInState(t, typ, s).PostRecv(recv0)
			require.NoError(t, err, "%v in %v", typ, s)
			require.Equal(t, 1, n)
		}
		_, err = e.newQPInState(t, typ, verbs.StateErr).PostRecv(recv0)
		require.NoError(t, err)
		require.Equal(t, verbs.WCWRFlushErr, e.next(t).Status)
	}
}

func testPostSendStateBadFlow(t *T) {
	e := newEnd(t)
	ah := e.handle(t, e.dev)
	send := []verbs.SendWR{{Opcode: verbs.WRSend, AH: ah, RemoteQPN: 0xabcdef}}
	for _, typ := range qpTypes {
		for _, s := range []verbs.QPState{verbs.StateReset, verbs.StateInit, verbs.StateRTR} {
			n, err := e.newQPInState(t, typ, s).PostSend(send)
			require.ErrorIs(t, err, verbs.ErrState, "%v in %v", typ, s)
			t.explains(err, fmt.Sprintf("state %v; modify it to RTS first", s))
			require.Zero(t, n)
		}
		for _, s := range []verbs.QPState{verbs.StateRTS, verbs.StateSQD} {
			_, err := e.newQPInState(t, typ, s).PostSend(send)
			require.NoError(t, err, "%v in %v", typ, s)
		}
		_, err := e.newQPInState(t, typ, verbs.StateErr).PostSend(send)
		require.NoError(t, err)
		require.Equal(t, verbs.WCWRFlushErr, e.next(t).Status)
	}
}

func testFullRQBadFlow(t *T) {
	e := newEnd(t)
	for _, typ := range qpTypes {
		q := e.newQPInState(t, typ, verbs.StateInit)
		n, err := q.PostRecv(make([]verbs.RecvWR, sizes.MaxRecvWR+3))
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		require.Equal(t, sizes.MaxRecvWR, n, "what fits is accepted")
		n, err = q.PostRecv(recv0)
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		t.explains(err, "poll completions first or create a larger one")
		require.Zero(t, n)
	}
}

func testFullSQBadFlow(t *T) {
	e := newEnd(t)
	q := e.newQPInState(t, verbs.RC, verbs.StateRTS) // the peer does not respond
	n, err := q.PostSend(make([]verbs.SendWR, sizes.MaxSendWR+3))
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.Equal(t, sizes.MaxSendWR, n)
}

func testRQWithLargerSGLBadFlow(t *T) {
	e := newEnd(t)
	for _, typ := range qpTypes {
		q := e.newQPInState(t, typ, verbs.StateInit)
		n, err := q.PostRecv([]verbs.RecvWR{{}, {SGList: make([]verbs.SGE, sizes.MaxRecvSGE+1)}, {}})
		require.ErrorIs(t, err, verbs.ErrLimit)
		t.explains(err, "5 scatter/gather elements, MaxRecvSGE is 4")
		require.Equal(t, 1, n)
	}
}
