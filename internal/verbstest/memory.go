package verbstest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// writeTo returns a write of n bytes to the start of a region of the peer.
func writeTo(a *end, mr verbs.MR, n int) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, n)}, RemoteAddr: mr.Addr(), RKey: mr.RKey()}
}

// reconnect brings queue pairs back from the error state. Their PSNs are far from the earlier
// ones, so that a late or duplicate packet of the old connection is not taken for a new one.
func reconnect(t *T, a, b *end) {
	t.Helper()
	var psns [2]uint32
	for i, e := range []*end{a, b} {
		before, _ := e.qp.Query()
		psns[i] = (before.SQPSN + 1<<16) & 0xffffff
		require.NoError(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState))
		for n := 1; n > 0; {
			n, _ = e.cq.Poll(make([]verbs.WC, 16))
		}
	}
	connectAt(t, a.dev, a.qp, psns[0], b.dev, b.qp, psns[1], verbs.ConnectOptions{})
}

// reregister registers the memory of a region with new keys, another access or another domain, as a
// new region.
func reregister(t *T, mr verbs.MR, pd verbs.PD, access verbs.AccessFlags) verbs.MR {
	t.Helper()
	buf := mr.Bytes()
	require.NoError(t, mr.Close())
	again, err := pd.RegMR(buf, access)
	require.NoError(t, err)
	require.NotEqual(t, mr.LKey(), again.LKey())
	return again
}

// testMRReregAddr checks that a receive with deregistered memory fails the message on both sides.
func testMRReregAddr(t *T) {
	a, b := pair(t)
	b.recv(t, 7, 0, 100)
	b.mr = reregister(t, b.mr, b.pd, allAccess)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 100)}})
	a.fails(t, verbs.WCRemOpErr, "its receive list is invalid")
	b.fails(t, verbs.WCLocProtErr, "the lkey is not registered")
	reconnect(t, a, b)
	checkTransfers(t, a, b, 100, 1)
}

func testMRReregAtomic(t *T) {
	a, b := pair(t)
	b.mr = reregister(t, b.mr, b.pd, verbs.AccessLocalWrite|verbs.AccessRemoteRead)
	a.post(t, atomicTo(a, b, 0))
	a.fails(t, verbs.WCRemAccessErr, "without AccessRemoteAtomic")
	reconnect(t, a, b)
	b.mr = reregister(t, b.mr, b.pd, verbs.AccessLocalWrite|verbs.AccessRemoteAtomic)
	a.post(t, atomicTo(a, b, 0))
	a.poll1(t)
	require.EqualValues(t, 1, b.mr.LoadUint64(0))
}

func testMRReregAccess(t *T) {
	a, b := pair(t)
	b.mr = reregister(t, b.mr, b.pd, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	a.post(t, writeTo(a, b.mr, 1000))
	a.poll1(t)
}

func testMRReregAccessBadFlow(t *T) {
	a, b := pair(t)
	a.post(t, writeTo(a, b.mr, 1000))
	a.poll1(t)
	old := writeTo(a, b.mr, 1000)
	b.mr = reregister(t, b.mr, b.pd, verbs.AccessLocalWrite)
	require.Zero(t, b.mr.RKey(), "there is no remote key without remote access")
	a.post(t, old)
	a.fails(t, verbs.WCRemAccessErr, "wrong or stale rkey")
	t.explainsEvent(b.event(t, verbs.EventQPAccessErr), "no such key")
}

func testMRReregPD(t *T) {
	a, b := pair(t)
	other, err := b.dev.AllocPD()
	require.NoError(t, err)
	b.mr = reregister(t, b.mr, other, allAccess)
	b.recv(t, 7, 0, 100)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 100)}})
	a.fails(t, verbs.WCRemOpErr, "its receive list is invalid")
	b.fails(t, verbs.WCLocProtErr, "another protection domain")
	reconnect(t, a, b)
	a.post(t, writeTo(a, b.mr, 8))
	a.fails(t, verbs.WCRemAccessErr, "wrong or stale rkey")
	reconnect(t, a, b)
	b.mr = reregister(t, b.mr, b.pd, allAccess)
	checkTransfers(t, a, b, 100, 1)
}

// testMRInvalidAccess tries every remote operation on memory without just its permission, and with
// an invalid key or range. The memory does not change.
func testMRInvalidAccess(t *T) {
	a, b := pair(t)
	const all = verbs.AccessLocalWrite | verbs.AccessRemote
	ops := map[verbs.WROpcode]verbs.AccessFlags{
		verbs.WRRDMAWrite: verbs.AccessRemoteWrite, verbs.WRRDMAWriteWithImm: verbs.AccessRemoteWrite,
		verbs.WRRDMARead: verbs.AccessRemoteRead, verbs.WRAtomicCmpSwap: verbs.AccessRemoteAtomic, verbs.WRAtomicFetchAdd: verbs.AccessRemoteAtomic,
	}
	for op, needs := range ops {
		for name, spoil := range map[string]func(wr *verbs.SendWR){
			"access":  func(wr *verbs.SendWR) { wr.RKey = b.reg(t, 64, all&^needs).RKey() },
			"key":     func(wr *verbs.SendWR) { wr.RKey ^= 0x4000 },
			"variant": func(wr *verbs.SendWR) { wr.RKey ^= 1 },
			"zero":    func(wr *verbs.SendWR) { wr.RKey = 0 },
			"after":   func(wr *verbs.SendWR) { wr.RemoteAddr += 64 },
			"before":  func(wr *verbs.SendWR) { wr.RemoteAddr -= 8 },
			"wrap":    func(wr *verbs.SendWR) { wr.RemoteAddr = 1<<64 - 8 },
			"stale": func(wr *verbs.SendWR) {
				mr := b.reg(t, 64, all)
				wr.RemoteAddr, wr.RKey = mr.Addr(), mr.RKey()
				require.NoError(t, mr.Close())
			},
			"domain": func(wr *verbs.SendWR) {
				pd, err := b.dev.AllocPD()
				require.NoError(t, err)
				mr, err := pd.RegMR(aligned(64), all)
				require.NoError(t, err)
				wr.RemoteAddr, wr.RKey = mr.Addr(), mr.RKey()
			},
		} {
			reconnect(t, a, b)
			mr := b.reg(t, 64, all)
			fill(a.mr.Bytes()[:8], 1)
			wr := verbs.SendWR{Opcode: op, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: mr.Addr(), RKey: mr.RKey(), CompareAdd: 0, Swap: 9}
			b.recv(t, 1, 0, 0)
			spoil(&wr)
			a.post(t, wr)
			wc := a.next(t)
			require.Equal(t, verbs.WCRemAccessErr, wc.Status, "%v with wrong %s: %v", op, name, wc.Err())
			require.Equal(t, make([]byte, 64), mr.Bytes(), "%v with wrong %s", op, name)
		}
	}
}

// testMRInvalidLocal tries every operation with an invalid local list.
func testMRInvalidLocal(t *T) {
	a, b := pair(t)
	readOnly := a.reg(t, 64, 0)
	for name, sge := range map[string]func() verbs.SGE{
		"key":    func() verbs.SGE { s := a.mr.SGE(0, 8); s.LKey ^= 0x4000; return s },
		"zero":   func() verbs.SGE { s := a.mr.SGE(0, 8); s.LKey = 0; return s },
		"bounds": func() verbs.SGE { return readOnly.SGE(60, 8) },
		"before": func() verbs.SGE { return readOnly.SGE(-8, 8) },
	} {
		for _, op := range []verbs.WROpcode{verbs.WRSend, verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRAtomicFetchAdd} {
			t.Run(fmt.Sprintf("%v with wrong %s", op, name), func(t *T) {
				reconnect(t, a, b)
				b.recv(t, 1, 0, 64)
				a.post(t, verbs.SendWR{Opcode: op, SGList: []verbs.SGE{sge()}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
				wc := a.next(t)
				require.Equal(t, t.status(verbs.WCLocProtErr), wc.Status, wc.Err())
			})
		}
	}
	t.Run("no local write", func(t *T) {
		reconnect(t, a, b)
		a.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{readOnly.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
		a.fails(t, verbs.WCLocProtErr, "read results require AccessLocalWrite")
	})
	t.Run("receive without local write", func(t *T) {
		reconnect(t, a, b)
		readOnly := b.reg(t, 64, verbs.AccessRemoteRead)
		_, err := b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{readOnly.SGE(0, 64)}}})
		require.NoError(t, err)
		a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 8)}})
		a.fails(t, verbs.WCRemOpErr, "its receive list is invalid")
		b.fails(t, verbs.WCLocProtErr, "receives and read results require AccessLocalWrite")
	})
}

// testMRZeroBasedTraffic addresses a region from 0 on, by both ends.
func testMRZeroBasedTraffic(t *T) {
	a, b := pair(t)
	a.mr = a.reg(t, 400_000, allAccess|verbs.AccessZeroBased)
	b.mr = b.reg(t, 400_000, allAccess|verbs.AccessZeroBased)
	require.Zero(t, b.mr.Addr())
	checkTransfers(t, a, b, 300_000, 1)
	a.post(t, atomicTo(a, b, 8))
	a.poll1(t)
	wr := writeTo(a, b.mr, 2)
	wr.RemoteAddr = 399_999
	a.post(t, wr)
	a.fails(t, verbs.WCRemAccessErr, "range outside the region")
}

func testMRDeregTwice(t *T) {
	e := newEnd(t)
	require.NoError(t, e.mr.Close())
	require.NoError(t, e.mr.Close())
}

// bindWindow binds a window on b's memory to its queue pair.
func bindWindow(t *T, b *end, access verbs.AccessFlags, n int) verbs.MW {
	t.Helper()
	mw, err := b.pd.AllocMW()
	require.NoError(t, err)
	before := mw.RKey()
	b.post(t, verbs.SendWR{WRID: 3, Opcode: verbs.WRBindMW, Bind: verbs.BindMW{MW: mw, RKey: verbs.IncRKey(before), MR: b.mr,
		Addr: b.mr.Addr(), Length: uint64(n), Access: access}})
	wc := b.poll1(t)
	require.Equal(t, verbs.WCBindMW, wc.Opcode)
	require.Equal(t, verbs.IncRKey(before), mw.RKey())
	return mw
}

// throughWindow returns a write of n bytes through a window at the start of b's memory.
func throughWindow(a, b *end, mw verbs.MW, n int) verbs.SendWR {
	wr := writeTo(a, b.mr, n)
	wr.RKey = mw.RKey()
	return wr
}

// windowPair returns a pair whose memory b grants remote access by windows only.
func windowPair(t *T) (a, b *end) {
	t.Helper()
	a, b = pair(t)
	b.mr = b.reg(t, 1<<20, verbs.AccessLocalWrite|verbs.AccessMWBind)
	fill(a.mr.Bytes()[:1000], 5)
	return a, b
}

func testMWType2(t *T) {
	a, b := windowPair(t)
	mw := bindWindow(t, b, verbs.AccessRemoteWrite, 1000)
	a.post(t, throughWindow(a, b, mw, 1000))
	a.poll1(t)
	require.Equal(t, a.mr.Bytes()[:1000], b.mr.Bytes()[:1000])

	err := b.mr.Close()
	require.ErrorIs(t, err, verbs.ErrBusy)
	t.explains(err, "memory windows bound to it: 1")

	a.post(t, throughWindow(a, b, mw, 1001))
	a.fails(t, verbs.WCRemAccessErr, "range outside the region")
	require.Zero(t, b.mr.Bytes()[1000])
}

// bindType1 binds a window of type 1 to the first n bytes of b's memory through its queue pair.
func bindType1(t *T, b *end, mw verbs.MW, n int) {
	t.Helper()
	b.post(t, verbs.SendWR{WRID: 3, Opcode: verbs.WRBindMW, Bind: verbs.BindMW{MW: mw, RKey: verbs.IncRKey(mw.RKey()), MR: b.mr,
		Addr: b.mr.Addr(), Length: uint64(n), Access: verbs.AccessRemoteWrite}})
	require.Equal(t, verbs.WCBindMW, b.poll1(t).Opcode)
}

func testMWType1(t *T) {
	a, b := windowPair(t)
	mw, err := b.pd.AllocMWType1()
	require.NoError(t, err)
	bindType1(t, b, mw, 500)
	bindType1(t, b, mw, 1000)
	a.post(t, throughWindow(a, b, mw, 1000))
	a.poll1(t)
	require.Equal(t, a.mr.Bytes()[:1000], b.mr.Bytes()[:1000])
}

// testInvalidateMWType1 ends the binding by one of length 0.
func testInvalidateMWType1(t *T) {
	a, b := windowPair(t)
	mw, err := b.pd.AllocMWType1()
	require.NoError(t, err)
	bindType1(t, b, mw, 1000)
	old := throughWindow(a, b, mw, 8)
	bindType1(t, b, mw, 0)
	a.post(t, old)
	a.fails(t, verbs.WCRemAccessErr, "wrong or stale rkey")
}

// testMWType1SendWithInv checks that the peer cannot invalidate a window of type 1.
func testMWType1SendWithInv(t *T) {
	a, b := windowPair(t)
	mw, err := b.pd.AllocMWType1()
	require.NoError(t, err)
	bindType1(t, b, mw, 1000)
	b.recv(t, 9, 2000, 16)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSendWithInv, InvKey: mw.RKey()})
	a.fails(t, verbs.WCRemAccessErr, "NAK remote access")
	b.fails(t, verbs.WCRemAccessErr, "SEND with invalidate: permission not granted")
}

func testMWType2InvalidateLocal(t *T) {
	a, b := windowPair(t)
	mw := bindWindow(t, b, verbs.AccessRemoteWrite, 1000)
	b.post(t, verbs.SendWR{Opcode: verbs.WRLocalInv, InvKey: mw.RKey()})
	require.Equal(t, verbs.WCLocalInv, b.poll1(t).Opcode)
	a.post(t, throughWindow(a, b, mw, 8))
	a.fails(t, verbs.WCRemAccessErr, "wrong or stale rkey")
	require.NoError(t, b.mr.Close(), "no window is left on it")
}

func testMWType2InvalidateRemote(t *T) {
	a, b := windowPair(t)
	mw := bindWindow(t, b, verbs.AccessRemoteWrite, 1000)
	b.recv(t, 9, 2000, 16)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSendWithInv, InvKey: mw.RKey(), SGList: []verbs.SGE{a.mr.SGE(0, 16)}})
	a.poll1(t)
	require.Equal(t, verbs.WC{WRID: 9, Opcode: verbs.WCRecv, Flags: verbs.WCWithInv, InvKey: mw.RKey(), ByteLen: 16, QPN: b.qp.Num()}, b.poll1(t))
	a.post(t, throughWindow(a, b, mw, 8))
	a.fails(t, verbs.WCRemAccessErr, "wrong or stale rkey")
}

// testMWInvalidateRemoteBadFlow checks that a key that is not of a window of the queue pair fails
// both ends.
func testMWInvalidateRemoteBadFlow(t *T) {
	a, b := windowPair(t)
	b.recv(t, 9, 2000, 16)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSendWithInv, InvKey: b.mr.LKey()})
	a.fails(t, verbs.WCRemAccessErr, "NAK remote access")
	b.fails(t, verbs.WCRemAccessErr, "SEND with invalidate: no such key")
}

func testMWType2InvalidateDealloc(t *T) {
	a, b := windowPair(t)
	mw := bindWindow(t, b, verbs.AccessRemoteWrite, 1000)
	require.NoError(t, mw.Close())
	require.NoError(t, mw.Close())
	a.post(t, throughWindow(a, b, mw, 8))
	a.fails(t, verbs.WCRemAccessErr, "wrong or stale rkey")
}

// testMWBindPermissions binds a window without remote write to memory that grants it: the window's
// permissions apply.
func testMWBindPermissions(t *T) {
	a, b := pair(t)
	mw := bindWindow(t, b, verbs.AccessRemoteRead, 1000)
	wr := throughWindow(a, b, mw, 8)
	wr.Opcode = verbs.WRRDMARead
	a.post(t, wr)
	a.poll1(t)
	a.post(t, throughWindow(a, b, mw, 8))
	a.fails(t, verbs.WCRemAccessErr, "without AccessRemoteWrite")
}

// testMWOfAnotherQP checks that a window of type 2B serves one queue pair only.
func testMWOfAnotherQP(t *T) {
	a, b := windowPair(t)
	first := b.qp
	a.qp, b.qp = a.newQP(t, verbs.RC), b.newQP(t, verbs.RC)
	connect(t, a.dev, a.qp, b.dev, b.qp)
	second := *b
	second.qp = first
	mw := bindWindow(t, &second, verbs.AccessRemoteWrite, 1000)
	a.post(t, throughWindow(a, b, mw, 8))
	a.fails(t, verbs.WCRemAccessErr, "NAK remote access")
	t.explainsEvent(b.event(t, verbs.EventQPAccessErr), "window bound to another queue pair")
}

// testMWBindBadFlow posts invalid binds: the completion has the cause and the queue pair is in the
// error state.
func testMWBindBadFlow(t *T) {
	for name, c := range map[string]struct {
		spoil func(e *end, b *verbs.BindMW)
		says  string
	}{
		"same key":        {func(e *end, b *verbs.BindMW) { b.RKey = b.MW.RKey() }, "no such key"},
		"other index":     {func(e *end, b *verbs.BindMW) { b.RKey ^= 0x100 }, "no such key"},
		"bounds":          {func(e *end, b *verbs.BindMW) { b.Length = uint64(e.mr.Len()) + 1 }, "range outside the region"},
		"empty":           {func(e *end, b *verbs.BindMW) { b.Length = 0 }, "range outside the region"},
		"not bindable":    {func(e *end, b *verbs.BindMW) { b.MR = e.regPlain() }, "permission not granted"},
		"no local access": {func(e *end, b *verbs.BindMW) { b.Access |= verbs.AccessLocalWrite }, "permission not granted"},
		"no window":       {func(e *end, b *verbs.BindMW) { b.MW = nil }, "other protection domain"},
		"no region":       {func(e *end, b *verbs.BindMW) { b.MR = nil }, "other protection domain"},
	} {
		t.Run(name, func(t *T) {
			_, b := pair(t)
			mw, err := b.pd.AllocMW()
			require.NoError(t, err)
			bind := verbs.BindMW{MW: mw, RKey: verbs.IncRKey(mw.RKey()), MR: b.mr, Addr: b.mr.Addr(), Length: 8, Access: verbs.AccessRemoteRead}
			c.spoil(b, &bind)
			b.post(t, verbs.SendWR{Opcode: verbs.WRBindMW, Bind: bind})
			b.fails(t, verbs.WCMWBindErr, c.says)
			require.Equal(t, verbs.StateErr, b.qp.State())
			require.NoError(t, mw.Close())
		})
	}
}

// regPlain registers memory without the permission to bind windows.
func (e *end) regPlain() verbs.MR {
	mr, err := e.pd.RegMR(aligned(64), verbs.AccessLocalWrite|verbs.AccessRemote)
	if err != nil {
		panic(err)
	}
	return mr
}

// testMWBindTwice checks that a bound window must be invalidated before another bind.
func testMWBindTwice(t *T) {
	_, b := windowPair(t)
	mw := bindWindow(t, b, verbs.AccessRemoteRead, 100)
	b.post(t, verbs.SendWR{Opcode: verbs.WRBindMW, Bind: verbs.BindMW{MW: mw, RKey: verbs.IncRKey(mw.RKey()), MR: b.mr,
		Addr: b.mr.Addr(), Length: 8, Access: verbs.AccessRemoteRead}})
	b.fails(t, verbs.WCMWBindErr, "window not in the state needed")
}
