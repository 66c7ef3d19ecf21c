package verbstest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// lengths are message lengths around every boundary.
func lengths(mtu int) []int {
	return []int{0, 1, 3, 4, 8, mtu - 1, mtu, mtu + 1, 2 * mtu, 2*mtu + 5, 17*mtu + 1, 300_001}
}

// testTransfers transfers messages of every kind and length, at every path MTU, and compares all
// bytes, including those around the target.
func testTransfers(t *T) {
	for mtu := verbs.MTU256; mtu <= verbs.MTU4096; mtu++ {
		t.Run(fmt.Sprintf("MTU=%d", mtu.Bytes()), func(t *T) {
			a, b := newEnd(t), newEnd(t)
			connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{MTU: mtu})
			for i, n := range lengths(mtu.Bytes()) {
				checkTransfers(t, a, b, n, uint64(i))
			}
		})
	}
}

// A Side is one side of a connection whose transfers are checked.
type Side struct {
	CQ verbs.CQ
	QP verbs.QP
	MR verbs.MR
}

// CheckTransfers writes, reads and sends n bytes between connected sides, and compares the memory.
func CheckTransfers(t testing.TB, a, b Side, n int, seed uint64) {
	t.Helper()
	checkTransfers(&T{TB: t, device: &Device{Explains: true}}, &end{cq: a.CQ, qp: a.QP, mr: a.MR}, &end{cq: b.CQ, qp: b.QP, mr: b.MR}, n, seed)
}

// checkTransfers writes, reads and sends n bytes between a and b.
func checkTransfers(t *T, a, b *end, n int, seed uint64) {
	const at, margin = 100, 16 // odd, for unaligned accesses
	t.Helper()
	off := at + int(seed)%7
	area := func(e *end) []byte { return e.mr.Bytes()[off-margin : off+n+margin] }
	// arrived compares dst with the content of src, and its margins with zero.
	arrived := func(dst, src []byte, what string) {
		t.Helper()
		want := make([]byte, len(dst))
		copy(want[margin:], src[margin:margin+n])
		require.Equal(t, want, dst, "%s of %d bytes", what, n)
	}
	fill(area(a), seed)
	clear(area(b))
	a.post(t, verbs.SendWR{WRID: 1, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(off, n)},
		RemoteAddr: b.mr.Addr() + uint64(off), RKey: b.mr.RKey()})
	wc := a.poll1(t)
	require.Equal(t, verbs.WC{WRID: 1, Opcode: verbs.WCRDMAWrite, ByteLen: uint32(n), QPN: a.qp.Num()}, wc)
	arrived(area(b), area(a), "write")

	fill(area(b), seed+1)
	clear(area(a))
	a.post(t, verbs.SendWR{WRID: 2, Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{a.mr.SGE(off, n)},
		RemoteAddr: b.mr.Addr() + uint64(off), RKey: b.mr.RKey()})
	require.Equal(t, verbs.WC{WRID: 2, Opcode: verbs.WCRDMARead, ByteLen: uint32(n), QPN: a.qp.Num()}, a.poll1(t))
	arrived(area(a), area(b), "read")

	fill(area(a), seed+2)
	clear(area(b))
	b.recv(t, 3, off, n)
	a.post(t, verbs.SendWR{WRID: 4, Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(off, n)}})
	require.Equal(t, verbs.WC{WRID: 4, Opcode: verbs.WCSend, ByteLen: uint32(n), QPN: a.qp.Num()}, a.poll1(t))
	require.Equal(t, verbs.WC{WRID: 3, Opcode: verbs.WCRecv, ByteLen: uint32(n), QPN: b.qp.Num()}, b.poll1(t))
	arrived(area(b), area(a), "send")

	clear(area(b))
	b.recv(t, 5, 0, 0)
	a.post(t, verbs.SendWR{WRID: 6, Opcode: verbs.WRRDMAWriteWithImm, SGList: []verbs.SGE{a.mr.SGE(off, n)},
		RemoteAddr: b.mr.Addr() + uint64(off), RKey: b.mr.RKey(), Imm: 0xdeadbeef})
	a.poll1(t)
	require.Equal(t, verbs.WC{WRID: 5, Opcode: verbs.WCRecvRDMAWithImm, Flags: verbs.WCWithImm, Imm: 0xdeadbeef,
		ByteLen: uint32(n), QPN: b.qp.Num()}, b.poll1(t))
	arrived(area(b), area(a), "write with immediate")
}

// testScatterGather splits messages over lists of uneven elements on both sides, some of them
// empty.
func testScatterGather(t *T) {
	a, b := pair(t)
	total := 10_000
	src := []verbs.SGE{a.mr.SGE(0, 0), a.mr.SGE(50_000, 1), a.mr.SGE(20_001, 4500), a.mr.SGE(80_000, total-4501)}
	dst := []verbs.SGE{b.mr.SGE(7, 4099), b.mr.SGE(60_000, 3), b.mr.SGE(0, 0), b.mr.SGE(30_000, total)}
	gather := func(e *end, list []verbs.SGE) (flat []byte) {
		for _, s := range list {
			off := s.Addr - e.mr.Addr()
			flat = append(flat, e.mr.Bytes()[off:off+uint64(s.Length)]...)
		}
		return flat
	}
	fill(a.mr.Bytes()[:100_000], 1)
	_, err := b.qp.PostRecv([]verbs.RecvWR{{SGList: dst}})
	require.NoError(t, err)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: src})
	a.poll1(t)
	require.EqualValues(t, total, b.poll1(t).ByteLen)
	require.Equal(t, gather(a, src), gather(b, dst)[:total])

	fill(b.mr.Bytes()[:total], 2)
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: src, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	a.poll1(t)
	require.Equal(t, b.mr.Bytes()[:total], gather(a, src))
}

// testLoopback connects two queue pairs of one device.
func testLoopback(t *T) {
	a := newEnd(t)
	b := *a
	b.cq = a.newCQ(t, 16)
	b.qp = a.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: b.cq})
	b.mr = a.reg(t, 1<<20, allAccess)
	connect(t, a.dev, a.qp, b.dev, b.qp)
	checkTransfers(t, a, &b, 100_000, 1)
	checkTransfers(t, &b, a, 100_000, 2)
}
