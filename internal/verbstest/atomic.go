package verbstest

import (
	"sync/atomic"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// wordAt returns the memory at offset off for atomics of the processor.
func wordAt(mr verbs.MR, off int) *uint64 { return (*uint64)(unsafe.Pointer(&mr.Bytes()[off])) }

// atomicTo returns a fetch-and-add of 1 to the peer's memory at offset off.
func atomicTo(a, b *end, off int) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRAtomicFetchAdd, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr() + uint64(off),
		RKey: b.mr.RKey(), CompareAdd: 1}
}

func testAtomicCmpAndSwap(t *T) {
	a, b := pair(t)
	there := wordAt(b.mr, 16)
	for _, c := range []struct{ have, compare, swap, want uint64 }{
		{0, 0, 1, 1},
		{1, 0, 2, 1},
		{1, 1, 1 << 63, 1 << 63},
		{1<<64 - 1, 1<<64 - 1, 0x0102030405060708, 0x0102030405060708},
	} {
		atomic.StoreUint64(there, c.have)
		wr := atomicTo(a, b, 16)
		wr.Opcode, wr.CompareAdd, wr.Swap = verbs.WRAtomicCmpSwap, c.compare, c.swap
		a.post(t, wr)
		require.Equal(t, verbs.WC{Opcode: verbs.WCCompSwap, ByteLen: 8, QPN: a.qp.Num()}, a.poll1(t))
		require.Equal(t, c.have, a.mr.LoadUint64(0), "the old value comes back, in host byte order")
		require.Equal(t, c.want, b.mr.LoadUint64(16))
	}
}

func testAtomicFetchAndAdd(t *T) {
	a, b := pair(t)
	atomic.StoreUint64(wordAt(b.mr, 8), 1<<64-3)
	for i := range uint64(5) {
		a.post(t, atomicTo(a, b, 8))
		require.Equal(t, verbs.WC{Opcode: verbs.WCFetchAdd, ByteLen: 8, QPN: a.qp.Num()}, a.poll1(t))
		require.Equal(t, i-3, a.mr.LoadUint64(0), "it wraps around")
	}
	require.EqualValues(t, 2, b.mr.LoadUint64(8))
}

// testAtomicWithProcessor checks that atomics of peers and of the processor do not lose each
// other's additions.
func testAtomicWithProcessor(t *T) {
	a, b := pair(t)
	const n = 500
	done := make(chan struct{})
	go func() {
		for range n {
			atomic.AddUint64(wordAt(b.mr, 0), 1<<32)
		}
		close(done)
	}()
	for range n {
		a.post(t, atomicTo(a, b, 0))
		a.poll1(t)
	}
	<-done
	require.Equal(t, uint64(n<<32|n), b.mr.LoadUint64(0))
}

func testAtomicInvalidQPAccess(t *T) {
	a, b := newEnd(t), newEnd(t)
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead})
	a.post(t, atomicTo(a, b, 0))
	a.fails(t, verbs.WCRemInvReqErr, "does not permit the operation")
}

func testAtomicInvalidMRAccess(t *T) {
	a, b := pair(t)
	b.mr = b.reg(t, 64, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	a.post(t, atomicTo(a, b, 0))
	a.fails(t, verbs.WCRemAccessErr, "without AccessRemoteAtomic")
	require.Zero(t, b.mr.LoadUint64(0))
}

func testAtomicNonAlignedAddr(t *T) {
	for _, off := range []int{1, 4, 7} {
		a, b := pair(t)
		a.post(t, atomicTo(a, b, off))
		a.fails(t, verbs.WCRemInvReqErr, "the address of an atomic must be a multiple of 8")
		require.Zero(t, b.mr.LoadUint64(0))
	}
}

func testAtomicInvalidLKey(t *T) {
	a, b := pair(t)
	wr := atomicTo(a, b, 0)
	wr.SGList[0].LKey++
	a.post(t, wr)
	a.fails(t, verbs.WCLocProtErr, "the lkey is not registered")
}

func testAtomicInvalidRKey(t *T) {
	a, b := pair(t)
	wr := atomicTo(a, b, 0)
	wr.RKey++
	a.post(t, wr)
	a.fails(t, verbs.WCRemAccessErr, "wrong or stale rkey")
	require.Zero(t, b.mr.LoadUint64(0))
}

// testAtomicInvalidLength checks that the result of an atomic has 8 bytes.
func testAtomicInvalidLength(t *T) {
	a, b := pair(t)
	for _, n := range []int{0, 4, 9} {
		wr := atomicTo(a, b, 0)
		wr.SGList = []verbs.SGE{a.mr.SGE(0, n)}
		_, err := a.qp.PostSend([]verbs.SendWR{wr})
		require.ErrorIs(t, err, verbs.ErrInvalid)
		t.explains(err, "an atomic returns 8 bytes")
	}
}
