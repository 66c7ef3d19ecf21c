package rnic

import (
	"testing"

	"github.com/softrnic/softrnic/verbs"
)

// BenchmarkPingPongInline measures a ping-pong in one goroutine: all the work of half a round trip
// without waits.
func BenchmarkPingPongInline(b *testing.B) {
	x, y := pair(b, Options{NoService: true})
	recv := func(e *end) []verbs.RecvWR { return []verbs.RecvWR{{WRID: 1, SGList: []verbs.SGE{e.mr.SGE(0, 64)}}} }
	rx, ry := recv(x), recv(y)
	for range 64 {
		x.qp.PostRecv(rx)
		y.qp.PostRecv(ry)
	}
	wrs := []verbs.SendWR{{WRID: 2, Opcode: verbs.WRSend, InlineData: make([]byte, 8)}}
	wc := make([]verbs.WC, 16)
	sent := 0
	half := func(from, to *end, r []verbs.RecvWR) {
		wrs[0].Flags = verbs.SendInline
		if sent++; sent%16 < 2 { // sometimes one of each end is signaled
			wrs[0].Flags |= verbs.SendSignaled
		}
		if _, err := from.qp.PostSend(wrs); err != nil {
			b.Fatal(err)
		}
		for {
			n, err := to.cq.Poll(wc)
			if err != nil {
				b.Fatal(err)
			}
			for i := range wc[:n] {
				if wc[i].Opcode.IsRecv() {
					to.qp.PostRecv(r)
					return
				}
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		half(x, y, ry)
		half(y, x, rx)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/half")
}

// BenchmarkWrite64KInline measures the work of a 64 KiB RDMA write at each end.
func BenchmarkWrite64KInline(b *testing.B) {
	x, y := pair(b, Options{NoService: true})
	wrs := []verbs.SendWR{{WRID: 2, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{x.mr.SGE(0, 65536)},
		RemoteAddr: y.mr.Addr(), RKey: y.mr.RKey()}}
	wc := make([]verbs.WC, 16)
	var post, recv, ack int64
	b.SetBytes(65536)
	b.ReportAllocs()
	for b.Loop() {
		t0 := monotonicNow()
		if _, err := x.qp.PostSend(wrs); err != nil {
			b.Fatal(err)
		}
		t1 := monotonicNow()
		for y.dev.Progress() > 0 {
		}
		t2 := monotonicNow()
		for n := 0; n == 0; {
			n, _ = x.cq.Poll(wc)
		}
		t3 := monotonicNow()
		post, recv, ack = post+t1-t0, recv+t2-t1, ack+t3-t2
	}
	b.ReportMetric(float64(post)/float64(b.N), "ns/post")
	b.ReportMetric(float64(recv)/float64(b.N), "ns/recv")
	b.ReportMetric(float64(ack)/float64(b.N), "ns/ack")
}
