//go:build interop && linux

package uverbs

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/verbs"
)

// The tests with the tag interop need the device rxe0 of a kernel. Those of package interop run them
// in the guest of the lab.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the time that a test waits for an expected event.
const patience = time.Minute

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// end is one side of a test.
type end struct {
	dev verbs.Device
	pd  verbs.PD
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR // all access
}

const allAccess = verbs.AccessLocalWrite | verbs.AccessRemote

// deviceName is the device of the guest, or that of the environment.
func deviceName() string {
	if name := os.Getenv("SOFTRNIC_UVERBS_TEST"); name != "" {
		return name
	}
	return "rxe0"
}

func newEnd(t testing.TB, typ verbs.QPType) *end {
	t.Helper()
	dev, err := Open(Options{Name: deviceName()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	e := &end{dev: dev}
	e.pd, err = dev.AllocPD()
	require.NoError(t, err)
	e.cq, err = dev.CreateCQ(256)
	require.NoError(t, err)
	e.qp, err = e.pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}})
	require.NoError(t, err)
	e.mr, err = e.pd.RegMR(make([]byte, 1<<20), allAccess)
	require.NoError(t, err)
	return e
}

// pair returns two connected queue pairs on two contexts of the device.
func pair(t testing.TB, typ verbs.QPType) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, typ), newEnd(t, typ)
	connect(t, a, b)
	return a, b
}

// connect connects two queue pairs.
func connect(t testing.TB, a, b *end) {
	t.Helper()
	ea, err := verbs.LocalEndpoint(a.dev, a.qp, 100)
	require.NoError(t, err)
	eb, err := verbs.LocalEndpoint(b.dev, b.qp, 200)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(a.qp, ea, eb, verbs.ConnectOptions{}))
	require.NoError(t, verbs.Connect(b.qp, eb, ea, verbs.ConnectOptions{}))
}

func (e *end) next(t testing.TB) verbs.WC {
	t.Helper()
	var wc [1]verbs.WC
	n, err := e.cq.PollWait(soon(t), wc[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	return wc[0]
}

func (e *end) post(t testing.TB, wr verbs.SendWR) {
	t.Helper()
	n, err := e.qp.PostSend([]verbs.SendWR{wr})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func (e *end) recv(t testing.TB, id uint64, off, n int) {
	t.Helper()
	_, err := e.qp.PostRecv([]verbs.RecvWR{{WRID: id, SGList: []verbs.SGE{e.mr.SGE(off, n)}}})
	require.NoError(t, err)
}

// TestTransfers moves data by every operation of RC.
func TestTransfers(t *testing.T) {
	a, b := pair(t, verbs.RC)
	for i := range a.mr.Bytes() {
		a.mr.Bytes()[i] = byte(i * 7)
	}
	const n = 10_000
	b.recv(t, 2, 0, n)
	a.post(t, verbs.SendWR{WRID: 1, Opcode: verbs.WRSendWithImm, Imm: 0x01020304, SGList: []verbs.SGE{a.mr.SGE(0, 4000), a.mr.SGE(4000, 6000)}})
	require.Equal(t, verbs.WC{WRID: 1, Opcode: verbs.WCSend, ByteLen: n, QPN: a.qp.Num()}, a.next(t))
	got := b.next(t)
	require.Equal(t, verbs.WC{WRID: 2, Opcode: verbs.WCRecv, Flags: verbs.WCWithImm, Imm: 0x01020304, ByteLen: n, QPN: b.qp.Num(), SrcQPN: got.SrcQPN}, got)
	require.Equal(t, a.mr.Bytes()[:n], b.mr.Bytes()[:n])

	a.post(t, verbs.SendWR{WRID: 3, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, n)}, RemoteAddr: b.mr.Addr() + n, RKey: b.mr.RKey()})
	require.Equal(t, verbs.WCRDMAWrite, a.next(t).Opcode)
	require.Equal(t, a.mr.Bytes()[:n], b.mr.Bytes()[n:2*n])

	b.mr.Bytes()[20] = 99
	a.post(t, verbs.SendWR{WRID: 4, Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{a.mr.SGE(n, n)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	require.Equal(t, verbs.WCRDMARead, a.next(t).Opcode)
	require.Equal(t, b.mr.Bytes()[:n], a.mr.Bytes()[n:2*n])

	clear(b.mr.Bytes()[:8])
	b.mr.Bytes()[0] = 37
	for i, wr := range []verbs.SendWR{
		{Opcode: verbs.WRAtomicFetchAdd, CompareAdd: 5}, {Opcode: verbs.WRAtomicCmpSwap, CompareAdd: 42, Swap: 7}, {Opcode: verbs.WRAtomicCmpSwap, CompareAdd: 1, Swap: 9},
	} {
		wr.SGList, wr.RemoteAddr, wr.RKey = []verbs.SGE{a.mr.SGE(0, 8)}, b.mr.Addr(), b.mr.RKey()
		a.post(t, wr)
		wc := a.next(t)
		require.NoError(t, wc.Err())
		require.EqualValues(t, []uint64{37, 42, 7}[i], a.mr.LoadUint64(0))
	}

	inline := []byte("inline data")
	b.recv(t, 5, 0, 64)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: inline})
	require.EqualValues(t, len(inline), a.next(t).ByteLen)
	require.EqualValues(t, len(inline), b.next(t).ByteLen)
	require.Equal(t, inline, b.mr.Bytes()[:len(inline)])
}

// TestFailure checks that an invalid key ends the queue pair, and that later work is flushed.
func TestFailure(t *testing.T) {
	a, b := pair(t, verbs.RC)
	a.post(t, verbs.SendWR{WRID: 1, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey() ^ 0xff00})
	wc := a.next(t)
	require.Equal(t, verbs.WCRemAccessErr, wc.Status)
	require.Equal(t, verbs.StateErr, a.qp.State())
	a.post(t, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend})
	wc = a.next(t)
	require.Equal(t, verbs.WCWRFlushErr, wc.Status)
	require.EqualValues(t, 2, wc.WRID)
	a.recv(t, 3, 0, 8)
	wc = a.next(t)
	require.Equal(t, verbs.WCWRFlushErr, wc.Status)
	require.EqualValues(t, 3, wc.WRID)
}

// TestAllocations checks that posts and polls allocate nothing.
func TestAllocations(t *testing.T) {
	a, b := pair(t, verbs.RC)
	sends := []verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 8)}}}
	receives := []verbs.RecvWR{{SGList: []verbs.SGE{b.mr.SGE(0, 8)}}}
	var wc [4]verbs.WC
	exchange := func() {
		if _, err := b.qp.PostRecv(receives); err != nil {
			panic(err)
		}
		if _, err := a.qp.PostSend(sends); err != nil {
			panic(err)
		}
		for _, c := range []verbs.CQ{a.cq, b.cq} {
			for n := 0; n == 0; {
				var err error
				if n, err = c.Poll(wc[:]); err != nil {
					panic(err)
				}
			}
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, exchange))
}
