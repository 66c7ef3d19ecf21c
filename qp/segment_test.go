package qp

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// transfer is a kind of message with data, as a table of its opcodes.
type transfer struct {
	op                        verbs.WROpcode
	types                     []verbs.QPType
	first, middle, last, only string
	ext                       string // data of the last packet
}

var rcuc = []verbs.QPType{verbs.RC, verbs.UC}

var transfers = []transfer{
	{verbs.WRSend, rcuc, "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_ONLY", ""},
	{verbs.WRSendWithImm, rcuc, "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST_IMM", "SEND_ONLY_IMM", " imm=cafe"},
	{verbs.WRSendWithInv, rcuc[:1], "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST_INV", "SEND_ONLY_INV", " inv=%x"},
	{verbs.WRRDMAWrite, rcuc, "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_ONLY", ""},
	{verbs.WRRDMAWriteWithImm, rcuc, "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST_IMM", "WRITE_ONLY_IMM", " imm=cafe"},
}

func (tr *transfer) writes() bool {
	return tr.op == verbs.WRRDMAWrite || tr.op == verbs.WRRDMAWriteWithImm
}

// packets returns the expected packets of a message of n bytes, independently of the code: ONLY or
// FIRST MIDDLE* LAST, RETH with the total length in the first, immediate data, key and AckReq (RC)
// in the last.
func (tr *transfer) packets(typ verbs.QPType, n, mtu int, ext string) []string {
	var s []string
	for off, i := 0, 0; off < n || i == 0; off, i = off+mtu, i+1 {
		name, tail, last := tr.middle, "", off+mtu >= n
		switch {
		case i == 0 && last:
			name = tr.only
		case i == 0:
			name = tr.first
		case last:
			name = tr.last
		}
		if k := min(mtu, n-off); k > 0 {
			tail += fmt.Sprintf(" len=%d", k)
		}
		if i == 0 && tr.writes() {
			tail += fmt.Sprintf(" @%x+%d", 8192, n)
		}
		if last {
			tail += ext
			if tr.op != verbs.WRRDMAWrite {
				tail += " SE"
			}
			if typ == verbs.RC {
				tail += " A"
			}
		}
		s = append(s, fmt.Sprintf("%s %d%s", name, i, tail))
	}
	return s
}

// TestSegmentation checks the packets of all kinds of messages by message length and MTU, on both
// connected services, at PSNs that wrap and that do not.
func TestSegmentation(t *testing.T) {
	for _, tr := range transfers {
		for _, typ := range tr.types {
			for mtu := verbs.MTU256; mtu <= verbs.MTU4096; mtu++ {
				m := mtu.Bytes()
				for _, n := range []int{0, 1, 2, 3, 4, m - 1, m, m + 1, 2 * m, 3*m - 2, 3 * m} {
					for _, psn := range []uint32{0, nearWrap} {
						t.Run(fmt.Sprintf("%v/%v/mtu %d/%d bytes/psn %x", typ, tr.op, m, n, psn), func(t *testing.T) {
							testSegmentation(t, &tr, typ, mtu, n, psn)
						})
					}
				}
			}
		}
	}
}

func testSegmentation(t *testing.T, tr *transfer, typ verbs.QPType, mtu verbs.MTU, n int, psn uint32) {
	p := connect(t, ofType(typ), withMTU(mtu), withPSN(psn))
	p.b.recv(7, 32768, 16384)
	win := p.b.mem.window(p.b.key)
	p.b.mem.regions[win].bound = p.b.Num()
	for i := range n {
		p.a.buf[i] = byte(i * 7)
	}
	wr := verbs.SendWR{
		WRID: 5, Opcode: tr.op, Flags: verbs.SendSignaled | verbs.SendSolicited,
		SGList: []verbs.SGE{p.a.sge(0, n)}, Imm: 0xcafe, InvKey: win, RemoteAddr: p.b.base + 8192, RKey: p.b.key,
	}
	p.a.post(p.now, wr)
	ext := tr.ext
	if tr.op == verbs.WRSendWithInv {
		ext = fmt.Sprintf(ext, win)
	}
	pkts := p.drain(p.a)
	require.Equal(t, tr.packets(typ, n, mtu.Bytes(), ext), p.describePackets(p.a, pkts))
	for _, pkt := range pkts {
		require.True(t, pkt.LengthFits(mtu.Bytes()), "payload and padding of %v", pkt.BTH.Opcode)
		require.Equal(t, p.b.Num(), pkt.BTH.DestQPN)
		require.EqualValues(t, 0xffff, pkt.BTH.PKey)
		require.False(t, pkt.BTH.MigReq)
	}
	for i, pkt := range pkts {
		p.deliver(p.b, pkt)
		require.False(t, p.b.MidMessage(), "it may be any adapter, packet %d", i)
	}
	at := 32768
	if tr.writes() {
		at = 8192
	}
	require.True(t, bytes.Equal(p.a.buf[:n], p.b.buf[at:at+n]))
	require.Equal(t, make([]byte, 64), p.b.buf[at+n:at+n+64], "nothing behind the message")

	p.exchange()
	want := map[verbs.WROpcode]string{
		verbs.WRSend: "7 RECV len=%d", verbs.WRSendWithImm: "7 RECV len=%d imm=cafe",
		verbs.WRSendWithInv: fmt.Sprintf("7 RECV len=%%d inv=%x", win), verbs.WRRDMAWriteWithImm: "7 RECV_RDMA_WITH_IMM len=%d imm=cafe",
	}[tr.op]
	if tr.op == verbs.WRRDMAWrite {
		require.Empty(t, p.b.takeCompletions())
	} else {
		require.Equal(t, []bool{true}, p.b.solicited, "SE of the last packet")
		require.Equal(t, []string{fmt.Sprintf(want, n)}, p.b.takeCompletions())
	}
	if tr.op == verbs.WRSendWithInv {
		require.Zero(t, p.b.mem.regions[win].bound, "the key was invalidated")
	}
	op := "SEND"
	if tr.writes() {
		op = "RDMA_WRITE"
	}
	require.Equal(t, []string{fmt.Sprintf("5 %s len=%d", op, n)}, p.a.takeCompletions())
}

// TestSegmentationOfReads checks that a READ is one request with a response of ceil(n/MTU) packets,
// at least one, and that the PSN of the next request follows the response.
func TestSegmentationOfReads(t *testing.T) {
	for mtu := verbs.MTU256; mtu <= verbs.MTU4096; mtu++ {
		m := mtu.Bytes()
		for _, n := range []int{0, 1, m - 1, m, m + 1, 3 * m} {
			t.Run(fmt.Sprintf("mtu %d/%d bytes", m, n), func(t *testing.T) {
				p := connect(t, withMTU(mtu))
				for i := range n {
					p.b.buf[100+i] = byte(i * 3)
				}
				p.a.post(p.now,
					p.read(1, 4096, 100, n),
					verbs.SendWR{WRID: 2, Opcode: verbs.WRRDMAWrite, RemoteAddr: p.b.base, RKey: p.b.key, Flags: verbs.SendSignaled})
				k := max(1, (n+m-1)/m)
				req := p.drain(p.a)
				require.Equal(t, []string{
					fmt.Sprintf("READ_REQUEST 0 @64+%d A", n), fmt.Sprintf("WRITE_ONLY %d @0+0 A", k),
				}, p.describePackets(p.a, req))
				p.deliver(p.b, req...)
				resp := p.drain(p.b)
				var want []string
				for i := range k {
					name, aeth := "MIDDLE", ""
					switch {
					case k == 1:
						name = "ONLY"
					case i == 0:
						name = "FIRST"
					case i == k-1:
						name = "LAST"
					}
					if name != "MIDDLE" {
						aeth = " 1f msn=1"
					}
					data := ""
					if d := min(m, n-i*m); d > 0 {
						data = fmt.Sprintf(" len=%d", d)
					}
					want = append(want, fmt.Sprintf("READ_RESPONSE_%s %d%s%s", name, i, data, aeth))
				}
				want = append(want, fmt.Sprintf("ACKNOWLEDGE %d 1f msn=2", k))
				require.Equal(t, want, p.describePackets(p.b, resp))
				p.deliver(p.a, resp...)
				require.Equal(t, []string{fmt.Sprintf("1 RDMA_READ len=%d", n), "2 RDMA_WRITE len=0"}, p.a.takeCompletions())
				require.True(t, bytes.Equal(p.b.buf[100:100+n], p.a.buf[4096:4096+n]))
				require.Equal(t, make([]byte, 64), p.a.buf[4096+n:4096+n+64])
			})
		}
	}
}

// TestSegmentationOfAtomics checks operands, response and byte order of atomics.
func TestSegmentationOfAtomics(t *testing.T) {
	p := connect(t)
	put := func(n *node, off int, v uint64) { putHost(n.buf[off:], v) }
	get := func(n *node, off int) uint64 { w, _ := atomicWord(n.buf[off:]); return *w }
	put(p.b, 64, 1<<40+7)
	p.a.post(p.now,
		p.fetchAdd(1, 0, 64, ^uint64(0)), // adds -1
		p.cmpSwap(2, 8, 64, 1<<40+6, 99),
		p.cmpSwap(3, 16, 64, 1, 5)) // no match
	pkts := p.drain(p.a)
	require.Equal(t, []string{"FETCH_ADD 0 A", "COMPARE_SWAP 1 A", "COMPARE_SWAP 2 A"}, p.describePackets(p.a, pkts))
	require.Equal(t, wire.AtomicETH{VA: p.b.base + 64, RKey: p.b.key, SwapAdd: ^uint64(0)}, pkts[0].AtomicETH())
	require.Equal(t, wire.AtomicETH{VA: p.b.base + 64, RKey: p.b.key, SwapAdd: 99, Compare: 1<<40 + 6}, pkts[1].AtomicETH())
	p.deliver(p.b, pkts...)
	resp := p.drain(p.b)
	require.Equal(t, []string{
		"ATOMIC_ACKNOWLEDGE 0 1f msn=1", "ATOMIC_ACKNOWLEDGE 1 1f msn=2", "ATOMIC_ACKNOWLEDGE 2 1f msn=3",
	}, p.describePackets(p.b, resp))
	p.deliver(p.a, resp...)
	require.Equal(t, []string{"1 FETCH_ADD len=8", "2 COMP_SWAP len=8", "3 COMP_SWAP len=8"}, p.a.takeCompletions())
	require.EqualValues(t, 99, get(p.b, 64))
	require.EqualValues(t, uint64(1<<40+7), get(p.a, 0))
	require.EqualValues(t, uint64(1<<40+6), get(p.a, 8))
	require.EqualValues(t, 99, get(p.a, 16))
}

// TestSegmentationOfLists checks that scatter/gather lists and inline data make the same packets as
// one buffer.
func TestSegmentationOfLists(t *testing.T) {
	p := connect(t)
	for i := range 1000 {
		p.a.buf[i] = byte(i)
	}
	p.a.post(p.now, verbs.SendWR{
		WRID: 1, Opcode: verbs.WRSend,
		SGList: []verbs.SGE{p.a.sge(0, 10), p.a.sge(10, 0), p.a.sge(10, 300), p.a.sge(310, 290)},
	}, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: p.a.buf[:60]})
	_, err := p.b.PostRecv([]verbs.RecvWR{
		{WRID: 3, SGList: []verbs.SGE{p.b.sge(0, 255), p.b.sge(1000, 0), p.b.sge(2000, 2), p.b.sge(3000, 1000)}},
		{WRID: 4, SGList: []verbs.SGE{p.b.sge(5000, 60)}},
	})
	require.NoError(t, err)
	clear(p.a.buf[600:]) // inline data was copied
	p.exchange()
	got := append(append(append([]byte{}, p.b.buf[:255]...), p.b.buf[2000:2002]...), p.b.buf[3000:3343]...)
	require.Equal(t, p.a.buf[:600], got)
	require.Equal(t, p.a.buf[:60], p.b.buf[5000:5060])
	require.Equal(t, []string{"3 RECV len=600", "4 RECV len=60"}, p.b.takeCompletions())
}

// TestMessageOfHalfOfAllPSNs checks the arithmetic of a message of 2^31 bytes, half of all PSNs at
// MTU 256, against the definition without sending it.
func TestMessageOfHalfOfAllPSNs(t *testing.T) {
	p := connect(t)
	huge := make([]byte, 1<<10)
	key := p.a.mem.add(0, huge, allAccess)
	p.a.post(p.now, verbs.SendWR{
		WRID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: p.b.base, RKey: p.b.key,
		SGList: []verbs.SGE{{Addr: 0, Length: 512, LKey: key}, {Addr: 0, Length: MaxMessage - 512, LKey: key}},
	})
	pkts := p.drain(p.a)
	require.Len(t, pkts, (512+len(huge))/256, "the second element leads outside of the region")
	require.EqualValues(t, uint32(MaxMessage), pkts[0].RETH().Length)
	require.Equal(t, []string{"1 LOC_PROT_ERR"}, p.a.takeCompletions())

	c := connect(t).a.Core
	w := sendWQE{op: verbs.WRRDMAWrite, length: MaxMessage, first: nearWrap, started: true}
	w.last = w.first.Add(w.packetCount(256) - 1)
	require.EqualValues(t, uint64(MaxMessage+(1<<23)*PacketCost), c.windowPosition(&w, w.last.Add(1))-c.windowPosition(&w, w.first))
	c.post(w)
	c.ackThrough(1, c.una.Add(-1))
	require.Equal(t, 1, c.sq.len(), "acknowledging earlier packets does not complete it")
	c.ackThrough(1, w.last)
	require.Zero(t, c.sq.len())
}
