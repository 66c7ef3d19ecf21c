package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

func newType1Test(t *testing.T, access verbs.AccessFlags) *windowTest {
	w := newWindowTest(t, access)
	mw, err := w.pd.AllocMWType1()
	require.NoError(t, err)
	w.mw = mw.(*memoryWindow)
	return w
}

// TestWindowType1 binds a window of type 1 twice and ends the binding: it serves any queue pair, only
// by its last key, and no request invalidates it.
func TestWindowType1(t *testing.T) {
	w := newType1Test(t, verbs.AccessLocalWrite|verbs.AccessMWBind)
	const read = verbs.AccessRemoteRead
	mem := (*pdMemory)(w.pd)
	require.Equal(t, qp.FaultUnbound, w.remote(16, 1, read, qpn))
	w.mustBind()
	first := w.mw.RKey()
	for _, user := range []uint32{qpn, otherQPN} {
		require.Equal(t, qp.NoFault, w.remote(16, 32, read, user))
	}
	require.Equal(t, qp.FaultAccess, mem.Invalidate(first, qpn))
	require.ErrorIs(t, w.mr.Close(), verbs.ErrBusy)

	other := mustReg(t, w.pd, aligned(64), verbs.AccessMWBind)
	require.Equal(t, qp.NoFault, w.bind(func(b *verbs.BindMW) {
		b.MR, b.Addr, b.Access = other, other.Addr(), read
	}), "to another region, without an end of the first binding")
	require.Nil(t, w.host.keys.lookup(first))
	_, fault := mem.Remote(w.mw.RKey(), other.Addr(), 32, read, otherQPN)
	require.Equal(t, qp.NoFault, fault)
	require.NoError(t, w.mr.Close(), "no window is left on it")

	w.pd.unbindQP(qpn)
	_, fault = mem.Remote(w.mw.RKey(), other.Addr(), 32, read, otherQPN)
	require.Equal(t, qp.NoFault, fault, "the queue pair that bound it does not matter")

	bound := w.mw.RKey()
	require.Equal(t, qp.FaultKey, mem.Bind(&verbs.BindMW{MW: w.mw, RKey: bound}, qpn), "the same key")
	require.Equal(t, qp.NoFault, mem.Bind(&verbs.BindMW{MW: w.mw, RKey: verbs.IncRKey(bound)}, otherQPN))
	require.Nil(t, w.host.keys.lookup(bound))
	require.Equal(t, verbs.IncRKey(bound), w.mw.RKey())
	_, fault = mem.Remote(w.mw.RKey(), other.Addr(), 1, read, qpn)
	require.Equal(t, qp.FaultUnbound, fault)
	require.NoError(t, other.Close())
	require.NoError(t, w.mw.Close())
	require.Equal(t, qp.FaultKey, mem.Bind(&verbs.BindMW{MW: w.mw, RKey: verbs.IncRKey(w.mw.RKey())}, qpn))
}

// TestBindType1Checks checks the rules that differ from those of type 2.
func TestBindType1Checks(t *testing.T) {
	const writable = verbs.AccessLocalWrite | verbs.AccessMWBind
	for name, c := range map[string]struct {
		mr     verbs.AccessFlags
		change func(b *verbs.BindMW)
		want   qp.Fault
	}{
		"plain":               {writable, func(*verbs.BindMW) {}, qp.NoFault},
		"zero-based region":   {writable | verbs.AccessZeroBased, func(*verbs.BindMW) {}, qp.FaultAccess},
		"zero-based window":   {writable, func(b *verbs.BindMW) { b.Access |= verbs.AccessZeroBased }, qp.FaultAccess},
		"windows not allowed": {verbs.AccessLocalWrite, func(*verbs.BindMW) {}, qp.FaultAccess},
		"too long":            {writable, func(b *verbs.BindMW) { b.Length = 49 }, qp.FaultBounds},
		"no region":           {writable, func(b *verbs.BindMW) { b.MR = nil }, qp.FaultDomain},
	} {
		w := newType1Test(t, c.mr)
		key := w.mw.RKey()
		require.Equal(t, c.want, w.bind(c.change), name)
		if c.want != qp.NoFault {
			require.Equal(t, key, w.mw.RKey(), name)
			require.NoError(t, w.mr.Close(), name)
		}
	}
}

// TestAllocMWType1Shards checks that a device with several engines has no windows of type 1.
func TestAllocMWType1Shards(t *testing.T) {
	dev, err := Open(Options{Shards: 2})
	if err != nil {
		t.Skip(err)
	}
	e := newEndOn(t, dev, verbs.RC)
	_, err = e.pd.AllocMWType1()
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	require.ErrorContains(t, err, "Options.Shards 2")
}
