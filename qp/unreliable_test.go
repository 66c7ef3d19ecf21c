package qp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestUCCompletesWhenSent checks that a UC message completes when it is sent, requests no
// acknowledgement, gets none, and has no timer.
func TestUCCompletesWhenSent(t *testing.T) {
	p := connect(t, ofType(verbs.UC))
	p.a.post(p.now, p.write(1, 0, 0, 600), p.send(2, 0, 8))
	out := &batch{room: 2}
	require.True(t, p.a.Drain(p.now, out))
	require.Empty(t, p.a.takeCompletions())
	pkts := append(p.parse(p.a, out), p.drain(p.a)...)
	require.Equal(t, []string{"1 RDMA_WRITE len=600", "2 SEND len=8"}, p.a.takeCompletions())
	require.Zero(t, p.a.Deadline())
	for _, pkt := range pkts {
		require.False(t, pkt.BTH.AckReq)
		pkt.BTH.AckReq = true
		p.deliver(p.b, pkt)
	}
	require.False(t, p.b.HasPendingAck())
	require.Empty(t, p.drain(p.b))
}

// TestUCRules is a table of packet sequences at a UC responder. PSNs are relative; "!" marks
// packets that are dropped. Memory and completions show that messages arrive completely or not at
// all.
func TestUCRules(t *testing.T) {
	type pkt struct {
		op  wire.Opcode
		psn int
		n   int
	}
	const sf, sm, sl, so = wire.UCSendFirst, wire.UCSendMiddle, wire.UCSendLast, wire.UCSendOnly
	const wf, wm, wl, wo = wire.UCWriteFirst, wire.UCWriteMiddle, wire.UCWriteLast, wire.UCWriteOnly
	const oos, seq, ok = wire.DropOutOfSequence, wire.DropBadSequence, wire.DropNone
	for _, c := range []struct {
		what  string
		pkts  []pkt
		drops []wire.Drop
		done  []string
	}{
		{"in order", []pkt{{sf, 0, 256}, {sm, 1, 256}, {sl, 2, 8}, {so, 3, 9}}, []wire.Drop{ok, ok, ok, ok}, []string{"0 RECV len=520", "1 RECV len=9"}},
		{"ONLY lost: the next one is taken as it comes", []pkt{{so, 5, 8}, {so, 9, 9}}, []wire.Drop{ok, ok}, []string{"0 RECV len=8", "1 RECV len=9"}},
		{"PSN behind: taken as it comes", []pkt{{so, 5, 8}, {so, -3, 9}}, []wire.Drop{ok, ok}, []string{"0 RECV len=8", "1 RECV len=9"}},
		{"FIRST lost", []pkt{{sm, 1, 256}, {sl, 2, 8}, {so, 3, 9}}, []wire.Drop{seq, seq, ok}, []string{"0 RECV len=9"}},
		{"MIDDLE lost", []pkt{{sf, 0, 256}, {sl, 2, 8}, {so, 3, 9}}, []wire.Drop{ok, oos, ok}, []string{"0 RECV len=9"}},
		{"LAST lost: the receive is reused", []pkt{{sf, 0, 256}, {so, 2, 9}}, []wire.Drop{ok, ok}, []string{"0 RECV len=9"}},
		{"rest of an abandoned message", []pkt{{sf, 0, 256}, {sm, 2, 256}, {sm, 3, 256}, {sl, 4, 8}, {sf, 5, 256}, {sl, 6, 8}},
			[]wire.Drop{ok, oos, seq, seq, ok, ok}, []string{"0 RECV len=264"}},
		{"MIDDLE twice", []pkt{{sf, 0, 256}, {sm, 1, 256}, {sm, 1, 256}, {sl, 2, 8}}, []wire.Drop{ok, ok, oos, seq}, nil},
		{"FIRST twice", []pkt{{sf, 0, 256}, {sf, 0, 256}, {sl, 1, 8}}, []wire.Drop{ok, ok, ok}, []string{"0 RECV len=264"}},
		{"WRITE inside a SEND", []pkt{{sf, 0, 256}, {wl, 1, 8}, {sl, 2, 8}}, []wire.Drop{ok, seq, seq}, nil},
		{"short FIRST", []pkt{{sf, 0, 252}, {sl, 1, 8}}, []wire.Drop{wire.DropBadLength, seq}, nil},
		{"short MIDDLE", []pkt{{sf, 0, 256}, {sm, 1, 252}, {sl, 2, 8}}, []wire.Drop{ok, wire.DropBadLength, seq}, nil},
		{"long ONLY", []pkt{{so, 0, 257}}, []wire.Drop{wire.DropBadLength}, nil},
		{"too long for the receive", []pkt{{sf, 0, 256}, {sm, 1, 256}, {sm, 2, 256}, {sl, 3, 8}, {so, 4, 7}},
			[]wire.Drop{ok, ok, wire.DropTooBigForBuffer, seq, ok}, []string{"0 RECV len=7"}},
		{"WRITE in order", []pkt{{wf, 0, 256}, {wm, 1, 256}, {wl, 2, 88}}, []wire.Drop{ok, ok, ok}, nil},
		{"WRITE longer than announced", []pkt{{wf, 0, 256}, {wm, 1, 256}, {wl, 2, 89}}, []wire.Drop{ok, ok, wire.DropBadLength}, nil},
		{"WRITE shorter than announced", []pkt{{wf, 0, 256}, {wl, 1, 88}}, []wire.Drop{ok, wire.DropBadLength}, nil},
		{"WRITE begun anew", []pkt{{wf, 0, 256}, {wm, 2, 256}, {wf, 3, 256}, {wm, 4, 256}, {wl, 5, 88}}, []wire.Drop{ok, oos, ok, ok, ok}, nil},
		{"immediate behind a loss", []pkt{{wf, 0, 256}, {wire.UCWriteLastImm, 2, 88}}, []wire.Drop{ok, oos}, nil},
		{"immediate", []pkt{{wf, 0, 256}, {wm, 1, 256}, {wire.UCWriteLastImm, 2, 88}}, []wire.Drop{ok, ok, ok}, []string{"0 RECV_RDMA_WITH_IMM len=600 imm=0"}},
		{"abandoned SEND's receive taken by an immediate", []pkt{{sf, 0, 256}, {wire.UCWriteOnlyImm, 7, 8}}, []wire.Drop{ok, wire.DropBadLength}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := connect(t, ofType(verbs.UC))
			p.recvs(0, 2)
			for i, k := range c.pkts {
				pkt := p.request(k.op, k.psn, k.n, nil)
				if k.op.Info().RETH {
					pkt = p.request(k.op, k.psn, k.n, p.reth(32768, 600, p.b.key))
				}
				require.Equal(t, c.drops[i], p.deliver(p.b, pkt), "packet %d", i)
			}
			if c.done == nil {
				c.done = []string{}
			}
			require.Equal(t, c.done, p.b.takeCompletions())
			require.Equal(t, verbs.StateRTS, p.b.State())
			require.Empty(t, p.b.raised())
			require.Empty(t, p.drain(p.b))
		})
	}
}

// TestUCDropsWhatItMayNot checks that packets with invalid keys, permissions or receives are
// dropped without a response.
func TestUCDropsWhatItMayNot(t *testing.T) {
	for what, c := range map[string]struct {
		opts []option
		pkt  func(p *pair) *wire.Packet
		want wire.Drop
	}{
		"no receive":      {nil, func(p *pair) *wire.Packet { return p.request(wire.UCSendOnly, 0, 8, nil) }, wire.DropNoReceive},
		"no receive, imm": {nil, func(p *pair) *wire.Packet { return p.request(wire.UCWriteOnlyImm, 0, 8, p.reth(0, 8, p.b.key)) }, wire.DropNoReceive},
		"unknown key":     {nil, func(p *pair) *wire.Packet { return p.request(wire.UCWriteOnly, 0, 8, p.reth(0, 8, 0xbad)) }, wire.DropAccessDenied},
		"bounds": {nil, func(p *pair) *wire.Packet {
			return p.request(wire.UCWriteOnly, 0, 8, p.reth(regionBytes-4, 8, p.b.key))
		}, wire.DropAccessDenied},
		"queue pair does not permit": {[]option{withAccess(0)}, func(p *pair) *wire.Packet {
			return p.request(wire.UCWriteOnly, 0, 8, p.reth(0, 8, p.b.key))
		}, wire.DropAccessDenied},
		"too long": {nil, func(p *pair) *wire.Packet { return p.request(wire.UCWriteFirst, 0, 256, p.tooLong) }, wire.DropBadLength},
		"bad padding": {nil, func(p *pair) *wire.Packet {
			return p.unpadded(p.request(wire.UCWriteOnly, 0, 7, p.reth(0, 7, p.b.key)))
		}, wire.DropBadLength},
	} {
		t.Run(what, func(t *testing.T) {
			p := connect(t, append([]option{ofType(verbs.UC)}, c.opts...)...)
			require.Equal(t, c.want, p.deliver(p.b, c.pkt(p)))
			require.Equal(t, verbs.StateRTS, p.b.State())
			require.Empty(t, p.b.raised())
			require.Equal(t, make([]byte, regionBytes), p.b.buf)
			if c.opts == nil {
				require.Equal(t, wire.DropNone, p.deliver(p.b, p.request(wire.UCWriteOnly, 1, 0, p.reth(0, 0, 0xbad))), "a write of nothing needs no key")
			}
		})
	}
}

// datagram returns a request of a to b.
func (p *pair) datagram(id uint64, n int) verbs.SendWR { return p.toPeer(p.send(id, 0, n)) }

// TestDatagram checks that a datagram is one packet that completes when it is sent, and that its
// receiver gets the GRH area first, the source queue pair, and the length with the GRH.
func TestDatagram(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, n := range []int{0, 1, 255, 4096} {
			t.Run(fmt.Sprint("v6 ", v6, " ", n), func(t *testing.T) {
				opts := []option{ofType(verbs.UD)}
				if v6 {
					opts = append(opts, withIPv6)
				}
				p := connect(t, opts...)
				for i := range n {
					p.a.buf[i] = byte(i*5 + 1)
				}
				p.b.recv(9, 1000, 40+n)
				wr := p.datagram(1, n)
				wr.Opcode, wr.Imm, wr.Flags = verbs.WRSendWithImm, 0xabcd, wr.Flags|verbs.SendSolicited
				p.a.post(p.now, wr)
				pkts := p.drain(p.a)
				require.Len(t, pkts, 1)
				require.Equal(t, wire.DETH{QKey: 0x1234, SrcQPN: p.a.Num()}, pkts[0].DETH())
				require.False(t, pkts[0].BTH.AckReq)
				require.True(t, pkts[0].BTH.SE)
				require.Equal(t, []string{fmt.Sprintf("1 SEND len=%d", n)}, p.a.takeCompletions())
				pkts[0].TOS = 0x28
				p.deliver(p.b, pkts...)
				require.Equal(t, verbs.WCGRH|verbs.WCWithImm, p.b.wcs[0].Flags)
				require.Equal(t, p.a.Num(), p.b.wcs[0].SrcQPN)
				require.Equal(t, []string{fmt.Sprintf("9 RECV len=%d imm=abcd", 40+n)}, p.b.takeCompletions())
				src, dst, tos, ok := wire.ParseGRH(p.b.buf[1000:])
				require.True(t, ok)
				require.Equal(t, p.a.addr.Addr(), src)
				require.Equal(t, p.b.addr.Addr(), dst)
				require.EqualValues(t, 0x28, tos)
				require.Equal(t, p.a.buf[:n], p.b.buf[1040:1040+n])
				require.Equal(t, make([]byte, 8), p.b.buf[1040+n:1048+n])
				require.Empty(t, p.drain(p.b))
			})
		}
	}
}

// TestDatagramIntoAList checks that GRH and data may be divided anywhere in the list.
func TestDatagramIntoAList(t *testing.T) {
	p := connect(t, ofType(verbs.UD))
	copy(p.a.buf, "0123456789")
	_, err := p.b.PostRecv([]verbs.RecvWR{{WRID: 9, SGList: []verbs.SGE{p.b.sge(0, 30), p.b.sge(100, 13), p.b.sge(200, 7)}}})
	require.NoError(t, err)
	p.a.post(p.now, p.datagram(1, 10))
	p.deliver(p.b, p.drain(p.a)...)
	require.Equal(t, []string{"9 RECV len=50"}, p.b.takeCompletions())
	require.Equal(t, "012", string(p.b.buf[110:113]))
	require.Equal(t, "3456789", string(p.b.buf[200:207]))
}

// TestDatagramDrops checks the datagrams that a UD receiver drops: another Q_Key, no receive, too
// small a receive, which stays for the next one; another partition; another transport.
func TestDatagramDrops(t *testing.T) {
	p := connect(t, ofType(verbs.UD))
	send := func(n int, change func(wr *verbs.SendWR)) *wire.Packet {
		wr := p.datagram(1, n)
		if change != nil {
			change(&wr)
		}
		p.a.post(p.now, wr)
		return p.drain(p.a)[0]
	}
	require.Equal(t, wire.DropNoReceive, p.deliver(p.b, send(8, nil)))
	p.b.recv(9, 0, 100)
	require.Equal(t, wire.DropBadQKey, p.deliver(p.b, send(8, func(wr *verbs.SendWR) { wr.RemoteQKey = 0x1235 })))
	require.Equal(t, wire.DropTooBigForBuffer, p.deliver(p.b, send(61, nil)))
	require.Equal(t, wire.DropTooBigForBuffer, p.deliver(p.b, send(4096, nil)))
	pkt := send(8, nil)
	pkt.BTH.PKey = 0x1234
	require.Equal(t, wire.DropBadPKey, p.deliver(p.b, pkt))
	require.Equal(t, wire.DropWrongTransport, p.deliver(p.b, p.request(wire.RCSendOnly, 0, 8, nil)))
	require.Equal(t, make([]byte, 200), p.b.buf[:200])
	require.Empty(t, p.b.takeCompletions())
	require.Equal(t, wire.DropNone, p.deliver(p.b, send(60, nil)))
	require.Equal(t, []string{"9 RECV len=100"}, p.b.takeCompletions())
	require.Equal(t, verbs.StateRTS, p.b.State())

	p.b.recv(10, 0, 100)
	pkt = send(8, nil)
	pkt.BTH.PKey = 0x7fff
	pkt.Src = p.b.addr
	require.Equal(t, wire.DropNone, p.deliver(p.b, pkt), "a limited member, from anywhere")
}

// TestQKeyWithTopBit checks that the queue pair's own Q_Key is sent if the top bit of the request's
// is set.
func TestQKeyWithTopBit(t *testing.T) {
	for asked, sent := range map[uint32]uint32{0x80001110: 0x1234, 0x80000000: 0x1234, 0xffffffff: 0x1234, 0x7fffffff: 0x7fffffff, 1: 1, 0: 0} {
		p := connect(t, ofType(verbs.UD))
		wr := p.datagram(1, 8)
		wr.RemoteQKey = asked
		p.a.post(p.now, wr)
		require.Equal(t, sent, p.drain(p.a)[0].DETH().QKey, "asked for %x", asked)
	}
}

// TestGSIQKey checks that the general services interface has its own Q_Key in both directions.
func TestGSIQKey(t *testing.T) {
	p := connect(t, ofType(verbs.GSI))
	p.b.recv(9, 0, 100)
	p.a.post(p.now, p.datagram(1, 8))
	pkts := p.drain(p.a)
	require.EqualValues(t, uint32(0x80010000), pkts[0].DETH().QKey)
	p.deliver(p.b, pkts...)
	require.Equal(t, []string{"9 RECV len=48"}, p.b.takeCompletions())
}

// TestDatagramPaths checks that each datagram is sent to the path of its address handle.
func TestDatagramPaths(t *testing.T) {
	p := connect(t, ofType(verbs.UD))
	for i := range uint64(3) {
		wr := p.datagram(i, 8)
		wr.AH.(*handle).path.TrafficClass = uint8(i)
		wr.RemoteQPN = 0x200 + uint32(i)
		p.a.post(p.now, wr)
	}
	for i, pkt := range p.drain(p.a) {
		require.EqualValues(t, i, pkt.TOS)
		require.EqualValues(t, 0x200+i, pkt.BTH.DestQPN)
		require.EqualValues(t, i, pkt.BTH.PSN.Sub(nearWrap), "PSNs count up")
	}
}

// TestUnreliableReceiveWithBadMemory checks that a receive without writable memory completes with
// LOC_PROT_ERR and takes the queue pair to ERR.
func TestUnreliableReceiveWithBadMemory(t *testing.T) {
	for typ, op := range map[verbs.QPType]wire.Opcode{verbs.UC: wire.UCSendOnly, verbs.UD: wire.UDSendOnly} {
		p := connect(t, ofType(typ))
		_, err := p.b.PostRecv([]verbs.RecvWR{{WRID: 9, SGList: []verbs.SGE{{Addr: 1, Length: 100, LKey: 0xbad}}}})
		require.NoError(t, err)
		p.deliver(p.b, p.request(op, 0, 8, func(b []byte) {
			if typ == verbs.UD {
				wire.DETH{QKey: 0x1234, SrcQPN: 3}.Put(b[wire.BTHLen:])
			}
		}))
		require.Equal(t, []string{"9 LOC_PROT_ERR"}, p.b.takeCompletions())
		require.Equal(t, verbs.StateErr, p.b.State())
	}
}

// TestDatagramOfThePort checks that the longest datagram is the active MTU of the port.
func TestDatagramOfThePort(t *testing.T) {
	p := connect(t, ofType(verbs.UD), withConfig(func(c *Config) { c.PortMTU = 1024 }))
	p.b.recv(7, 32768, 4096)
	_, err := p.a.PostSend(p.now, []verbs.SendWR{p.datagram(1, 1025)})
	require.ErrorIs(t, err, verbs.ErrLimit)
	p.a.post(p.now, p.datagram(2, 1024))
	p.exchange()
	require.Equal(t, []string{"2 SEND len=1024"}, p.a.takeCompletions())
}

// TestUnreliableCompleteOrNone checks that on any network an unreliable message arrives completely or
// not at all; without reordering and duplication at most once and in order; and that all requests
// of the sender complete.
func TestUnreliableCompleteOrNone(t *testing.T) {
	for seed := range uint64(300) {
		for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
			t.Run(fmt.Sprint(typ, " seed ", seed), func(t *testing.T) { wholeOrNone(t, typ, seed) })
		}
	}
}

func wholeOrNone(t *testing.T, typ verbs.QPType, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0xdead))
	p := connect(t, ofType(typ), withPSN(uint32(rng.IntN(1<<24))))
	net := &network{rng: rng, now: 1, room: 1 + rng.IntN(3), loss: float64(rng.IntN(3)) / 10}
	if rng.IntN(2) == 0 {
		net.dup, net.reorder = 0.1, 0.2
	}
	const messages, slot = 60, 1000
	grh := 0
	if typ == verbs.UD {
		grh = 40
	}
	sizes := [messages]int{}
	posted, received := 0, 0
	a, b := &end{node: p.a, app: 1}, &end{node: p.b, app: 1}
	net.ends = [2]*end{a, b}
	a.act = func() {
		id := byte(posted)
		n := rng.IntN(800) // several packets on UC
		copy(p.a.buf[posted*slot:], bytes.Repeat([]byte{id}, n))
		wr := p.toPeer(p.send(uint64(id), posted*slot, n))
		wr.Opcode, wr.Imm = verbs.WRSendWithImm, uint32(id)
		sizes[posted] = n
		p.a.post(net.now, wr)
		if posted++; posted < messages {
			a.app = net.now + reliability.Time(rng.Int64N(20*reliability.Microsecond)) + 1
		}
	}
	b.act = func() { // fewer receives than messages
		p.b.recv(uint64(received), received*slot, slot)
		if received++; received < messages {
			b.app = net.now + reliability.Time(rng.Int64N(21*reliability.Microsecond)) + 1
		}
	}
	for net.step() {
	}
	require.Len(t, p.a.wcs, messages)
	last := -1
	for _, wc := range p.b.wcs {
		require.Equal(t, verbs.WCSuccess, wc.Status)
		id := int(wc.Imm)
		require.EqualValues(t, sizes[id]+grh, wc.ByteLen, "length of message %d", id)
		got := p.b.buf[int(wc.WRID)*slot+grh:][:sizes[id]]
		require.Equal(t, bytes.Repeat([]byte{byte(id)}, sizes[id]), got, "content of message %d", id)
		if net.dup == 0 {
			require.Greater(t, id, last, "order")
		}
		last = id
	}
	if net.loss == 0 && net.dup == 0 {
		require.NotEmpty(t, p.b.wcs)
	}
}
