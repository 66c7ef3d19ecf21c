package rnic

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

const qpn, otherQPN = 0x11, 0x22

// windowTest is a region of 64 bytes and an unbound window.
type windowTest struct {
	t    *testing.T
	host *pdTestHost
	pd   *protectionDomain
	mr   *memoryRegion
	mw   *memoryWindow
}

func newWindowTest(t *testing.T, access verbs.AccessFlags) *windowTest {
	host := newPDTestHost()
	pd := newPD(host)
	mw, err := pd.AllocMW()
	require.NoError(t, err)
	return &windowTest{t: t, host: host, pd: pd, mr: mustReg(t, pd, aligned(64), access), mw: mw.(*memoryWindow)}
}

// bind returns a bind of bytes 16 to 48, with read and write, modified by change.
func (w *windowTest) bind(change func(*verbs.BindMW)) qp.Fault {
	b := verbs.BindMW{MW: w.mw, MR: w.mr, RKey: verbs.IncRKey(w.mw.RKey()), Addr: w.mr.Addr() + 16, Length: 32,
		Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead}
	if change != nil {
		change(&b)
	}
	return (*pdMemory)(w.pd).Bind(&b, qpn)
}

func (w *windowTest) mustBind() {
	w.t.Helper()
	require.Equal(w.t, qp.NoFault, w.bind(nil))
}

func (w *windowTest) remote(off int, n uint32, need verbs.AccessFlags, qpn uint32) qp.Fault {
	_, fault := (*pdMemory)(w.pd).Remote(w.mw.RKey(), w.mr.Addr()+uint64(off), n, need, qpn)
	return fault
}

func TestWindowLife(t *testing.T) {
	// The region itself grants no remote access: the window's permissions apply.
	w := newWindowTest(t, verbs.AccessLocalWrite|verbs.AccessMWBind)
	const read, write, atomic = verbs.AccessRemoteRead, verbs.AccessRemoteWrite, verbs.AccessRemoteAtomic
	first := w.mw.RKey()
	require.NotZero(t, first)
	require.Equal(t, qp.FaultUnbound, w.remote(16, 1, read, qpn))

	w.mustBind()
	require.Equal(t, verbs.IncRKey(first), w.mw.RKey())
	require.Equal(t, qp.NoFault, w.remote(16, 32, read|write, qpn))
	mem, _ := (*pdMemory)(w.pd).Remote(w.mw.RKey(), w.mr.Addr()+20, 4, write, qpn)
	require.Same(t, &w.mr.Bytes()[20], &mem[0])
	require.Equal(t, qp.FaultBounds, w.remote(15, 1, read, qpn))
	require.Equal(t, qp.FaultBounds, w.remote(48, 1, read, qpn))
	require.Equal(t, qp.FaultAccess, w.remote(16, 8, atomic, qpn))
	require.Equal(t, qp.FaultQP, w.remote(16, 1, read, otherQPN))
	require.Nil(t, w.host.keys.lookup(first), "the key from before the bind")
	_, fault := (*pdMemory)(newPD(w.host)).Remote(w.mw.RKey(), w.mr.Addr()+16, 1, read, qpn)
	require.Equal(t, qp.FaultDomain, fault)
	_, fault = (*pdMemory)(w.pd).Local(w.mw.RKey(), w.mr.Addr()+16, 1, false)
	require.Equal(t, qp.FaultKey, fault)

	require.Equal(t, qp.FaultQP, (*pdMemory)(w.pd).Invalidate(w.mw.RKey(), otherQPN))
	require.Equal(t, qp.NoFault, (*pdMemory)(w.pd).Invalidate(w.mw.RKey(), qpn))
	require.Equal(t, qp.FaultUnbound, w.remote(16, 1, read, qpn))
	require.Equal(t, qp.FaultUnbound, (*pdMemory)(w.pd).Invalidate(w.mw.RKey(), qpn))

	w.mustBind()
	require.Equal(t, verbs.IncRKey(verbs.IncRKey(first)), w.mw.RKey())
	require.Equal(t, qp.NoFault, w.remote(16, 32, read, qpn))
	require.NoError(t, w.mw.Close())
	require.EqualValues(t, 1, w.host.quiesced.Load())
	require.Equal(t, qp.FaultKey, w.remote(16, 1, read, qpn))
	require.Equal(t, qp.FaultKey, (*pdMemory)(w.pd).Invalidate(w.mw.RKey(), qpn))
	require.Equal(t, qp.FaultKey, w.bind(nil))
	require.NoError(t, w.mw.Close())

	require.NoError(t, w.mr.Close())
	require.NoError(t, w.pd.Close())
}

func TestBindChecks(t *testing.T) {
	const writable = verbs.AccessLocalWrite | verbs.AccessMWBind
	for name, c := range map[string]struct {
		mr     verbs.AccessFlags
		change func(*windowTest, *verbs.BindMW)
		want   qp.Fault
	}{
		"plain": {writable, func(*windowTest, *verbs.BindMW) {}, qp.NoFault},
		"whole region": {writable, func(w *windowTest, b *verbs.BindMW) {
			b.Addr, b.Length = w.mr.Addr(), 64
		}, qp.NoFault},
		"read-only window on read-only region": {verbs.AccessMWBind, func(_ *windowTest, b *verbs.BindMW) {
			b.Access = verbs.AccessRemoteRead
		}, qp.NoFault},
		"no permission at all": {writable, func(_ *windowTest, b *verbs.BindMW) { b.Access = 0 }, qp.NoFault},
		"no window":            {writable, func(_ *windowTest, b *verbs.BindMW) { b.MW = nil }, qp.FaultDomain},
		"nil window":           {writable, func(_ *windowTest, b *verbs.BindMW) { b.MW = (*memoryWindow)(nil) }, qp.FaultDomain},
		"no region":            {writable, func(_ *windowTest, b *verbs.BindMW) { b.MR = nil }, qp.FaultDomain},
		"window of another domain": {writable, func(w *windowTest, b *verbs.BindMW) {
			b.MW, _ = newPD(w.host).AllocMW()
		}, qp.FaultDomain},
		"region of another domain": {writable, func(w *windowTest, b *verbs.BindMW) {
			b.MR = mustReg(w.t, newPD(w.host), make([]byte, 64), writable)
		}, qp.FaultDomain},
		"same key":            {writable, func(w *windowTest, b *verbs.BindMW) { b.RKey = w.mw.RKey() }, qp.FaultKey},
		"other index":         {writable, func(_ *windowTest, b *verbs.BindMW) { b.RKey ^= 1 << 8 }, qp.FaultKey},
		"key 0":               {writable, func(_ *windowTest, b *verbs.BindMW) { b.RKey = 0 }, qp.FaultKey},
		"dead region":         {writable, func(w *windowTest, _ *verbs.BindMW) { _ = w.mr.Close() }, qp.FaultKey},
		"windows not allowed": {verbs.AccessLocalWrite, func(*windowTest, *verbs.BindMW) {}, qp.FaultAccess},
		"write without local write": {verbs.AccessMWBind, func(_ *windowTest, b *verbs.BindMW) {
			b.Access = verbs.AccessRemoteWrite
		}, qp.FaultAccess},
		"atomic without local write": {verbs.AccessMWBind, func(_ *windowTest, b *verbs.BindMW) {
			b.Access = verbs.AccessRemoteAtomic
		}, qp.FaultAccess},
		"local permission": {writable, func(_ *windowTest, b *verbs.BindMW) { b.Access |= verbs.AccessLocalWrite }, qp.FaultAccess},
		"windows on a window": {writable, func(_ *windowTest, b *verbs.BindMW) {
			b.Access |= verbs.AccessMWBind
		}, qp.FaultAccess},
		"no length":  {writable, func(_ *windowTest, b *verbs.BindMW) { b.Length = 0 }, qp.FaultBounds},
		"too long":   {writable, func(_ *windowTest, b *verbs.BindMW) { b.Length = 49 }, qp.FaultBounds},
		"before":     {writable, func(w *windowTest, b *verbs.BindMW) { b.Addr = w.mr.Addr() - 1 }, qp.FaultBounds},
		"behind":     {writable, func(w *windowTest, b *verbs.BindMW) { b.Addr = w.mr.Addr() + 65 }, qp.FaultBounds},
		"wraps":      {writable, func(_ *windowTest, b *verbs.BindMW) { b.Length = -b.Addr + 1 }, qp.FaultBounds},
		"wraps most": {writable, func(_ *windowTest, b *verbs.BindMW) { b.Length = ^uint64(0) }, qp.FaultBounds},
		"misaligned atomics from zero": {writable, func(_ *windowTest, b *verbs.BindMW) {
			b.Addr += 4
			b.Access = verbs.AccessRemoteAtomic | verbs.AccessZeroBased
		}, qp.FaultMisalign},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindowTest(t, c.mr)
			key := w.mw.RKey()
			require.Equal(t, c.want, w.bind(func(b *verbs.BindMW) { c.change(w, b) }))
			if c.want == qp.NoFault {
				require.Equal(t, qp.FaultUnbound, w.bind(nil), "bound twice")
				return
			}
			require.Equal(t, key, w.mw.RKey(), "a failed bind changes nothing")
			require.Equal(t, qp.FaultUnbound, w.remote(16, 1, verbs.AccessRemoteRead, qpn))
			require.Zero(t, w.mr.windows)
		})
	}
}

func TestZeroBasedWindow(t *testing.T) {
	for _, zeroMR := range []verbs.AccessFlags{0, verbs.AccessZeroBased} {
		w := newWindowTest(t, verbs.AccessLocalWrite|verbs.AccessMWBind|zeroMR)
		require.Equal(t, qp.NoFault, w.bind(func(b *verbs.BindMW) { b.Access |= verbs.AccessZeroBased | verbs.AccessRemoteAtomic }))
		mem, fault := (*pdMemory)(w.pd).Remote(w.mw.RKey(), 0, 32, verbs.AccessRemoteWrite, qpn)
		require.Equal(t, qp.NoFault, fault)
		require.Same(t, &w.mr.Bytes()[16], &mem[0])
		_, fault = (*pdMemory)(w.pd).Remote(w.mw.RKey(), 1, 32, verbs.AccessRemoteWrite, qpn)
		require.Equal(t, qp.FaultBounds, fault)
	}
}

func TestDeregIsBusyWhileBound(t *testing.T) {
	w := newWindowTest(t, allAccess)
	w.mustBind()
	err := w.mr.Close()
	require.ErrorIs(t, err, verbs.ErrBusy)
	require.ErrorContains(t, err, "memory windows bound to it: 1")
	require.Equal(t, qp.NoFault, w.remote(16, 32, verbs.AccessRemoteRead, qpn), "nothing changed")
	_, fault := (*pdMemory)(w.pd).Remote(w.mr.RKey(), w.mr.Addr(), 1, verbs.AccessRemoteRead, qpn)
	require.Equal(t, qp.NoFault, fault)

	require.Equal(t, qp.NoFault, (*pdMemory)(w.pd).Invalidate(w.mw.RKey(), qpn))
	require.NoError(t, w.mr.Close())
}

func TestOnlyWindowsAreInvalidated(t *testing.T) {
	w := newWindowTest(t, allAccess)
	require.Equal(t, qp.FaultKey, (*pdMemory)(w.pd).Invalidate(w.mr.RKey(), qpn))
	require.Equal(t, qp.FaultKey, (*pdMemory)(w.pd).Invalidate(0, qpn))
	require.Equal(t, qp.FaultUnbound, (*pdMemory)(w.pd).Invalidate(w.mw.RKey(), qpn))
	w.mustBind()
	require.Equal(t, qp.FaultKey, (*pdMemory)(w.pd).Invalidate(w.mw.RKey()^2, qpn))
	require.Equal(t, qp.FaultDomain, (*pdMemory)(newPD(w.host)).Invalidate(w.mw.RKey(), qpn))
	require.Equal(t, qp.NoFault, w.remote(16, 32, verbs.AccessRemoteRead, qpn))
}

func TestUnbindQP(t *testing.T) {
	w := newWindowTest(t, allAccess)
	w.mustBind()
	second, err := w.pd.AllocMW()
	require.NoError(t, err)
	require.Equal(t, qp.NoFault, (*pdMemory)(w.pd).Bind(&verbs.BindMW{MW: second, MR: w.mr, RKey: verbs.IncRKey(second.RKey()),
		Addr: w.mr.Addr(), Length: 8, Access: verbs.AccessRemoteRead}, otherQPN))

	w.pd.unbindQP(0x33)
	require.Equal(t, qp.NoFault, w.remote(16, 1, verbs.AccessRemoteRead, qpn))
	w.pd.unbindQP(qpn)
	require.Equal(t, qp.FaultUnbound, w.remote(16, 1, verbs.AccessRemoteRead, qpn))
	_, fault := (*pdMemory)(w.pd).Remote(second.RKey(), w.mr.Addr(), 8, verbs.AccessRemoteRead, otherQPN)
	require.Equal(t, qp.NoFault, fault)
	require.ErrorIs(t, w.mr.Close(), verbs.ErrBusy)
	w.pd.unbindQP(otherQPN)
	require.Empty(t, w.pd.bound)

	w.mustBind()
	w.pd.noteBound(w.mw, otherQPN) // as when the list was made
	w.pd.unbindQP(otherQPN)
	require.Equal(t, qp.NoFault, w.remote(16, 1, verbs.AccessRemoteRead, qpn), "bound anew to another queue pair meanwhile")
	w.pd.unbindQP(qpn)
	require.NoError(t, w.mr.Close())
}

// TestWindowsBesideEverything binds, accesses, invalidates and closes window, region and queue pair
// concurrently. The race detector and the final count check the result.
func TestWindowsBesideEverything(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	for round := range 60 {
		mr := mustReg(t, pd, make([]byte, 64), allAccess)
		made, err := pd.AllocMW()
		require.NoError(t, err)
		mw := made.(*memoryWindow)
		var wg sync.WaitGroup
		wg.Go(func() { // the queue pair
			for range 30 {
				host.shard.Lock()
				key := verbs.IncRKey(mw.RKey())
				(*pdMemory)(pd).Bind(&verbs.BindMW{MW: mw, MR: mr, RKey: key, Addr: mr.Addr(), Length: 64, Access: verbs.AccessRemoteWrite}, qpn)
				if mem, fault := (*pdMemory)(pd).Remote(key, mr.Addr(), 64, verbs.AccessRemoteWrite, qpn); fault == qp.NoFault {
					mem[0]++
				}
				(*pdMemory)(pd).Invalidate(key, qpn)
				host.shard.Unlock()
			}
		})
		wg.Go(func() { // closed without waiting
			for range round {
				runtime.Gosched()
			}
			pd.unbindQP(qpn)
			if round%2 == 0 {
				assert.NoError(t, mw.Close())
			}
			for mr.Close() != nil {
				runtime.Gosched()
			}
			mr.Bytes()[0] = 0
		})
		wg.Wait()
		if round%2 != 0 {
			require.NoError(t, mw.Close())
		}
		require.Zero(t, mr.windows)
	}
	require.NoError(t, pd.Close())
	require.Zero(t, host.keys.live)
	require.Empty(t, pd.bound)
}
