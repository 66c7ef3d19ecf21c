package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// flushPair returns a pair whose queue pairs permit FLUSH, and b's region too.
func flushPair(t *testing.T) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, Options{}), newEnd(t, Options{})
	const access = verbs.AccessRemote | verbs.AccessFlushGlobal | verbs.AccessFlushPersistent
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{Access: access})
	b.mr = b.reg(t, 1<<20, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessFlushGlobal)
	fill(a.mr.Bytes()[:1000], 5)
	return a, b
}

// flushOf returns a FLUSH of the first n bytes of b's memory.
func flushOf(b *end, n int) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRFlush, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
		Flush: verbs.Flush{Placement: verbs.FlushGlobal, Length: uint32(n)}}
}

func TestFlush(t *testing.T) {
	a, b := flushPair(t)
	attr := b.dev.QueryDevice()
	require.True(t, attr.FlushGlobal && attr.AtomicWrite)
	require.False(t, attr.FlushPersistent)
	for _, whole := range []bool{false, true} {
		wr := flushOf(b, 1000)
		if whole {
			wr.Flush.Selectivity, wr.RemoteAddr = verbs.FlushRegion, 0
		}
		a.post(t, writeTo(a, b.mr, 1000))
		a.post(t, wr)
		require.Equal(t, verbs.WCRDMAWrite, a.poll1(t).Opcode)
		require.Equal(t, verbs.WC{Opcode: verbs.WCFlush, ByteLen: 1000, QPN: a.qp.Num()}, a.poll1(t))
		require.Equal(t, a.mr.Bytes()[:1000], b.mr.Bytes()[:1000])
	}
}

// TestFlushTypeViolate requests persistence of memory that does not permit it.
func TestFlushTypeViolate(t *testing.T) {
	a, b := flushPair(t)
	wr := flushOf(b, 8)
	wr.Flush.Placement = verbs.FlushPersistent
	a.post(t, wr)
	a.fails(t, verbs.WCRemAccessErr, "without AccessFlushPersistent")
}

// TestRegMRFlushPersistent checks that no memory is registered as persistent.
func TestRegMRFlushPersistent(t *testing.T) {
	e := newEnd(t, Options{})
	_, err := e.pd.RegMR(make([]byte, 8), verbs.AccessLocalWrite|verbs.AccessFlushPersistent)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "not persistent")
	mr, err := e.pd.RegMR(make([]byte, 8), verbs.AccessFlushGlobal)
	require.NoError(t, err)
	require.NotZero(t, mr.RKey(), "a peer needs it for FLUSH")
	require.NoError(t, mr.Close())
}

func TestAtomicWrite(t *testing.T) {
	a, b := flushPair(t)
	wr := writeTo(a, b.mr, 8)
	wr.Opcode = verbs.WRAtomicWrite
	wr.RemoteAddr += 16
	a.post(t, wr)
	require.Equal(t, verbs.WC{Opcode: verbs.WCAtomicWrite, ByteLen: 8, QPN: a.qp.Num()}, a.poll1(t))
	require.Equal(t, a.mr.LoadUint64(0), b.mr.LoadUint64(16))
	wr.RemoteAddr -= 4
	a.post(t, wr)
	a.fails(t, verbs.WCRemInvReqErr, "must be a multiple of 8")
}
